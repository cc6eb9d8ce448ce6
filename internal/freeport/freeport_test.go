package freeport

import (
	"io"
	"testing"
)

// An address can be listened on more than once, and until the test ends nobody else who looks gets it.
func TestAnAddressIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		find          func(testing.TB) string
		wanted, other func(string) (io.Closer, error)
	}{
		"TCP": {TCP, listenTCP, listenUDP},
		"UDP": {UDP, listenUDP, listenTCP},
	} {
		var at string
		t.Run(name, func(t *testing.T) {
			at = c.find(t)
			for range 3 {
				l, err := c.wanted(at)
				if err != nil {
					t.Fatal(err)
				}
				l.Close()
			}
			if l, err := c.other(at); err == nil {
				l.Close()
				t.Errorf("%s is not marked", at)
			}
		})
		l, err := c.other(at)
		if err != nil {
			t.Errorf("%s, the mark stays: %v", name, err)
			continue
		}
		l.Close()
	}
}
