package ingest

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// compose appends an answer as fasthttp would write it.
func (x *express) compose(dst []byte, a *answer, now time.Time, last bool) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(a.status), 10)
	dst = append(append(dst, ' '), fasthttp.StatusMessage(a.status)...)
	dst = append(append(dst, "\r\nDate: "...), x.edge.dates.at(now)...)
	dst = append(append(dst, "\r\nContent-Type: "...), a.mediaType...)
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
