package ingest

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// dateLine is the field Date of all answers of a second.
type dateLine struct {
	second int64
	text   string
}

// compose appends an answer as fasthttp would write it.
func (x *express) compose(dst []byte, a *answer, now time.Time, last bool) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(a.status), 10)
	dst = append(append(dst, ' '), fasthttp.StatusMessage(a.status)...)
	dst = append(dst, x.dated(now)...)
	dst = append(append(dst, "Content-Type: "...), a.mediaType...)
	dst = strconv.AppendInt(append(dst, "\r\nContent-Length: "...), int64(len(a.doc)), 10)
	for _, f := range a.fields[:a.n] {
		dst = append(append(append(append(dst, "\r\n"...), f.name...), ": "...), f.value...)
	}
	if x.edge.cors != nil {
		dst = append(dst, "\r\nVary: Origin"...)
	}
	if last {
		dst = append(dst, "\r\nConnection: close"...)
	}
	return append(append(dst, "\r\n\r\n"...), a.doc...)
}

// dated returns the field Date with the ends of the line before and its own.
func (x *express) dated(now time.Time) string {
	second := now.Unix()
	if d := x.date.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dateLine{second, string(append(fasthttp.AppendHTTPDate([]byte("\r\nDate: "), now), "\r\n"...))}
	x.date.Store(d)
	return d.text
}
