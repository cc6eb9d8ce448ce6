package compress

import (
	"io"
	"math"
	"slices"
)

// appendAll appends everything r yields to dst and stops with ErrTooLarge after limit bytes. It grows dst
// only for bytes that came, never for announced ones.
func appendAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	end := math.MaxInt // one more than may be filled, so that too much shows
	if limit < math.MaxInt-len(dst) {
		end = len(dst) + limit + 1
	}
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(len(dst), 4<<10), end-len(dst)))
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), end)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) == end:
			return dst, ErrTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

// appender is an io.Writer that appends.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
