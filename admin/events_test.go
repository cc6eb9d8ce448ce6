package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// give returns a ReadRows that has these rows and then ends.
func give(rows ...Row) func(context.Context, Query, func([]Row) error) error {
	return func(_ context.Context, _ Query, visit func([]Row) error) error {
		if err := visit(nil); err != nil {
			return err
		}
		return visit(rows)
	}
}

func plainRows(n int) (rows []Row) {
	for i := range n {
		rows = append(rows, Row{Gateway: "g", Number: uint64(i + 1), Slot: event.NoSlot, Data: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return rows
}

func TestEventsAsLines(t *testing.T) {
	b := start(t)
	b.rows = give(
		Row{Gateway: "0123", Number: 5, Partition: 3, Slot: 77, Epoch: 2, HasKey: true, Key: []byte("k\n"), ID: []byte("id"), Time: 1e9, Data: []byte(`{"a":"<ä>"}`)},
		Row{Gateway: "0123", Number: 6, Slot: event.NoSlot, Data: nil},
		Row{Gateway: "0123", Number: 7, Slot: 0, HasKey: true, Key: []byte{}, Data: []byte("x")},
	)
	g := b.ask("GET", "/v1/streams/web/events", "").expect(t, 200)
	want := `{"stream":"web","partition":3,"gateway":"0123","number":5,"slot":77,"epoch":2,"key":"k\n","id":"id","time":"1970-01-01T00:00:01Z","data":"{\"a\":\"<ä>\"}"}
{"stream":"web","partition":0,"gateway":"0123","number":6,"slot":null,"epoch":0,"key":null,"id":null,"time":"1970-01-01T00:00:00Z","data":""}
{"stream":"web","partition":0,"gateway":"0123","number":7,"slot":0,"epoch":0,"key":"","id":null,"time":"1970-01-01T00:00:00Z","data":"x"}
`
	if g.body != want || g.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%s\n%s", g.header.Get("Content-Type"), g.body)
	}
}

func TestG04BytesThatAreNoTextAreBase64(t *testing.T) {
	b := start(t)
	b.rows = give(Row{Number: 1, HasKey: true, Key: []byte("\xff"), ID: []byte("\xfe"), Data: []byte("before\xff\xfe-after")}, plainRows(1)[0])
	b.ask("GET", "/v1/streams/web/events", "").expect(t, 200,
		`"key_base64":"/w=="`, `"id_base64":"/g=="`, `"data_base64":"YmVmb3Jl//4tYWZ0ZXI="`, `"data":"{\"n\":0}"`)
}

func TestF04EventTooLargeIsAnEntry(t *testing.T) {
	b := start(t, func(c *Config) { c.RowBytes = 100 })
	rows := plainRows(3)
	rows[1].Data = make([]byte, 101)
	rows[2].Fault, rows[2].Size = event.BadZstd, 9
	b.rows = give(append(rows, plainRows(1)...)...)
	g := b.ask("GET", "/v1/streams/web/events", "").expect(t, 200,
		`{"stream":"web","partition":0,"gateway":"g","number":2,"error":"event_too_large","size":101}`, `"error":"bad_zstd","size":9`)
	if n := strings.Count(g.body, "\n"); n != 4 {
		t.Errorf("%d lines: %s", n, g.body)
	}
}

func TestEventsQuery(t *testing.T) {
	b := start(t)
	var seen Query
	b.rows = func(_ context.Context, q Query, visit func([]Row) error) error {
		seen = q
		return visit(nil)
	}
	for query, want := range map[string]Query{
		"":                         {Stream: "web", Partition: AllPartitions},
		"?from=start&follow=false": {Stream: "web", Partition: AllPartitions},
		"?follow=true&idle=1500ms": {Stream: "web", Partition: AllPartitions, Follow: true, Idle: 1500 * time.Millisecond},
		"?from=now&follow=true":    {Stream: "web", Partition: AllPartitions, Now: true, Follow: true},
		"?from=17&partition=0":     {Stream: "web", Number: 17},
		"?partition=2147483647":    {Stream: "web", Partition: 2147483647},
	} {
		b.ask("GET", "/v1/streams/web/events"+query, "").expect(t, 200)
		if seen != want {
			t.Errorf("%s: %+v", query, seen)
		}
	}
	for _, query := range []string{"from=x", "from=-1", "from=", "partition=-1", "partition=2147483648", "limit=0", "limit=x", "follow=maybe", "idle=0s", "idle=-1s", "idle=x", "nope=1", "from=1&from=2"} {
		b.ask("GET", "/v1/streams/web/events?"+query, "").expect(t, 400, "bad_parameter")
	}
}

func TestEventsLimit(t *testing.T) {
	b := start(t)
	var after error
	b.rows = func(_ context.Context, _ Query, visit func([]Row) error) error {
		for range 3 {
			if after = visit(plainRows(4)); after != nil {
				return after
			}
		}
		return nil
	}
	for limit, want := range map[string]int{"1": 1, "4": 4, "5": 5, "12": 12, "100": 12} {
		for _, follow := range []string{"true", "false"} {
			g := b.ask("GET", "/v1/streams/web/events?limit="+limit+"&follow="+follow, "").expect(t, 200)
			if n := strings.Count(g.body, "\n"); n != want {
				t.Errorf("limit %s, follow %s: %d lines", limit, follow, n)
			}
		}
	}
}

func TestManyEventsComeWhole(t *testing.T) {
	b := start(t)
	const n = 20_000 // several times the buffer
	b.rows = give(plainRows(n)...)
	g := b.ask("GET", "/v1/streams/web/events", "").expect(t, 200)
	if lines := strings.Count(g.body, "\n"); lines != n || !strings.Contains(g.body, fmt.Sprintf(`{\"n\":%d}`, n-1)) {
		t.Errorf("%d lines", lines)
	}
}

func TestEventsAsFrames(t *testing.T) {
	b := start(t)
	b.runs = func(_ context.Context, _ Query, visit func(StoredRun) error) error {
		for _, r := range []StoredRun{{}, {Events: 2, Payload: []byte("one")}, {Events: 2, Payload: []byte("two")}} {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}
	for query, want := range map[string]string{"": "onetwo", "?limit=2": "one", "?limit=3": "onetwo"} {
		g := b.ask("GET", "/v1/streams/web/events"+query, "", "Accept", "application/octet-stream").expect(t, 200)
		if g.body != want || g.header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s: %q %s", query, g.body, g.header.Get("Content-Type"))
		}
	}
	b.runs = func(_ context.Context, _ Query, visit func(StoredRun) error) error {
		return errors.Join(visit(StoredRun{Payload: []byte("one")}), errors.New("disk"))
	}
	req, _ := http.NewRequest("GET", b.base+"/v1/streams/web/events", nil)
	req.Header.Set("Accept", "application/octet-stream")
	resp, err := b.http.Do(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("frames that broke off look complete")
	}
}

func TestEventsThatFail(t *testing.T) {
	b := start(t)
	b.rows = func(context.Context, Query, func([]Row) error) error {
		return event.Problemf(event.NotReadable, "HTTP nodes can't be read")
	}
	b.ask("GET", "/v1/streams/web/events", "").expect(t, 501, "not_readable")
	for err, want := range map[error]string{
		errors.New("disk secret"):                              `{"detail":"reading events failed; the gateway's log may say more","error":"internal"}`,
		event.Problemf(event.BackendUnavailable, "it is gone"): `{"detail":"it is gone","error":"backend_unavailable"}`,
	} {
		b.rows = func(_ context.Context, _ Query, visit func([]Row) error) error {
			if err := visit(plainRows(1)); err != nil {
				return err
			}
			return err
		}
		g := b.ask("GET", "/v1/streams/web/events", "").expect(t, 200)
		if _, last, _ := strings.Cut(g.body, "\n"); last != want+"\n" {
			t.Errorf("%s", g.body)
		}
	}
	b.rows = func(context.Context, Query, func([]Row) error) error { return nil }
	b.ask("GET", "/v1/streams/web/events", "").expect(t, 200)
}

// follower reads rows from a channel until its context ends.
type follower struct {
	rows chan []Row
	left chan struct{} // closed when ReadRows has returned
}

func (f *follower) read(ctx context.Context, q Query, visit func([]Row) error) error {
	defer close(f.left)
	if err := visit(nil); err != nil {
		return err
	}
	for {
		select {
		case rows := <-f.rows:
			if err := visit(rows); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *bench) follow(ctx context.Context, more ...string) (*follower, *http.Response) {
	b.t.Helper()
	f := &follower{rows: make(chan []Row), left: make(chan struct{})}
	b.rows = f.read
	req, err := http.NewRequestWithContext(ctx, "GET", b.base+"/v1/streams/web/events?from=now&follow=true"+strings.Join(more, ""), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.http.Do(req) // returns with the header: before any event
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	return f, resp
}

func TestFollowShowsEventsAtOnceAndEndsAtShutdown(t *testing.T) {
	b := start(t)
	f, resp := b.follow(context.Background())
	in := bufio.NewReader(resp.Body)
	for range 3 {
		f.rows <- plainRows(1)
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, `"number":1`) {
			t.Fatalf("%q %v", line, err)
		}
	}
	if err := b.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-f.left
	if rest, err := io.ReadAll(in); err != nil || len(rest) != 0 {
		t.Errorf("the answer does not end cleanly: %q, %v", rest, err)
	}
}

// A read that ends by itself must not look as if it had, when it is the gateway that ends.
func TestAReadThatHasAnEndIsBrokenOffAtShutdown(t *testing.T) {
	b := start(t)
	f, resp := b.follow(context.Background(), "&idle=1h")
	f.rows <- plainRows(1)
	if err := b.server.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-f.left
	text, err := io.ReadAll(resp.Body)
	if lines := strings.SplitAfter(string(text), "\n"); err != nil || len(lines) != 3 || !strings.Contains(lines[0], `"number":1`) || !strings.Contains(lines[1], `"error":"draining"`) {
		t.Errorf("%q, %v", text, err)
	}
}

func TestFollowEndsWhenTheClientLeaves(t *testing.T) {
	b := start(t)
	ctx, leave := context.WithCancel(context.Background())
	f, _ := b.follow(ctx)
	leave()
	<-f.left
}

func TestReadersAreBounded(t *testing.T) {
	b := start(t, func(c *Config) { c.Readers = 1 })
	ctx, leave := context.WithCancel(context.Background())
	f, _ := b.follow(ctx)
	b.ask("GET", "/v1/streams/web/events", "").expect(t, 503, "overloaded")
	leave()
	<-f.left
}
