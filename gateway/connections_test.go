package gateway

import "testing"

// F30: files for the stores are kept from clients.
func TestF30FilesAreReserved(t *testing.T) {
	for _, c := range []struct{ most, files, want int }{
		{20_000, 1 << 20, 20_000}, {20_000, 21_000, 20_000}, {20_000, 20_000, 19_000}, {20_000, 1024, 512}, {100, 1024, 100}, {20_000, 2000, 1000}, {20_000, 256, 128},
	} {
		if got := sockets(c.most, c.files); got != c.want {
			t.Errorf("%d configured, %d files: %d, want %d", c.most, c.files, got, c.want)
		}
	}
}
