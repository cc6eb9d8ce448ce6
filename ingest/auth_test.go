package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/event"
)

// bearers are who may send with which token: to s, and to what does not exist.
type bearers map[string]string

func (b bearers) Sender(authorization, stream []byte) ([]byte, *event.Problem) {
	id, ok := b[strings.TrimPrefix(string(authorization), "Bearer ")]
	switch {
	case !ok:
		return nil, event.Problemf(event.Unauthorized, "no")
	case string(stream) == "other":
		return nil, event.Problemf(event.Forbidden, "not there")
	}
	return []byte(id), nil
}

func guarded(d *Deps) { d.Auth = bearers{"good": "me"} }

const goodToken = "Authorization: Bearer good"

func TestWhoMaySend(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{}, guarded)
	for _, c := range []struct {
		name, stream string
		header       []string
		status       int
		code         event.Code
	}{
		{"no token", "s", nil, 401, event.Unauthorized},
		{"wrong token", "s", []string{"Authorization: Bearer bad"}, 401, event.Unauthorized},
		{"two tokens", "s", []string{goodToken, goodToken}, 401, event.Unauthorized},
		{"no token, no stream", "nobody", nil, 401, event.Unauthorized},
		{"wrong stream", "other", []string{goodToken}, 403, event.Forbidden},
		{"no stream", "nobody", []string{goodToken}, 404, event.UnknownStream},
		{"before other faults", "s", []string{"Content-Encoding: rar"}, 401, event.Unauthorized},
		{"good", "s", []string{goodToken}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.dial().send(request11("/v1/streams/"+c.stream+"/events", "1\n", append(c.header, ndjson)...)).answer().want(t, c.status, c.code)
			want := ""
			if c.status == 401 {
				want = `Bearer realm="headgate"`
			}
			if got := r.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q, want %q", got, want)
			}
			if c.status != 200 {
				g.nothing()
			}
		})
	}
}

func TestTheCallerIsTheSource(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{}, guarded)
	for source, want := range map[string]string{"": "me", "Headgate-Source: robot": "robot"} {
		header := []string{ndjson, goodToken}
		if source != "" {
			header = append(header, source)
		}
		g.post("1\n", header...).want(t, 200, "")
		if all := g.take(); len(all) != 1 || all[0].producer != want {
			t.Errorf("%q: stored %+v, want producer %s", source, all, want)
		}
	}
}

// TestC02BombWithoutCredentials: the answer is there although most of the body is never sent, and nothing of it is read
// as a body.
func TestC02BombWithoutCredentials(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{}, guarded)
	bomb := gzipped(strings.Repeat(" ", 8<<20))
	text := request11(events, bomb, ndjson, "Content-Encoding: gzip")
	c := g.dial().send(text[:len(text)-len(bomb)/2])
	c.answer().want(t, 401, event.Unauthorized)
	c.closed()
	c = g.dial().send(chunked(events, ndjson, "Content-Encoding: gzip") + chunks(bomb[:100], 100))
	c.answer().want(t, 401, event.Unauthorized)
	c.closed()
	err := testutil.GatherAndCompare(g.metrics, strings.NewReader(`
# HELP headgate_ingest_bytes_total Bytes of bodies: wire as sent, inflated without content coding.
# TYPE headgate_ingest_bytes_total counter
headgate_ingest_bytes_total{kind="wire",stream="other"} 0
headgate_ingest_bytes_total{kind="inflated",stream="other"} 0
`), "headgate_ingest_bytes_total")
	if err != nil {
		t.Error(err)
	}
	g.post(gzipped("1\n"), ndjson, goodToken, "Content-Encoding: gzip").want(t, 200, "")
}

func TestH09WrongTokenIsAnsweredAtOnce(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{}, guarded)
	for _, header := range []string{"Authorization: Bearer bad", "Authorization: Basic Z29vZA==", "A: b"} {
		c := g.dial().send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n%s\r\n%s\r\n\r\n", events, ndjson, header))
		if r := c.answer().want(t, 401, event.Unauthorized); !r.Close { // an answer 100 would have been read as this one
			t.Error("the connection stays open")
		}
		c.closed()
	}
}
