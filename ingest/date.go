package ingest

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// dates makes the field Date, once for all answers of a second.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	second int64
	text   string
}

func (d *dates) at(now time.Time) string {
	second := now.Unix()
	if last := d.last.Load(); last != nil && last.second == second {
		return last.text
	}
	next := &date{second, string(fasthttp.AppendHTTPDate(nil, now))}
	d.last.Store(next)
	return next.text
}
