package leaks

import (
	"strings"
	"testing"
	"time"
)

// A goroutine that ends is waited for, and one that does not is named.
func TestFind(t *testing.T) {
	began, stay, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); forgotten(began, stay) }()
	<-began
	if err := find(0); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Errorf("%v", err)
	}
	time.AfterFunc(time.Second, func() { close(stay) }) // goleak alone has given up by then
	None(t)
	<-ended
}

func forgotten(began, stay chan struct{}) { close(began); <-stay }
