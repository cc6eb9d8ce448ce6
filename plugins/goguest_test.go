package plugins

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// goGuest returns a chain of testdata/goguest, what it logs, and the counters it keeps.
func goGuest(t testing.TB, config string) (*Chain, *bytes.Buffer) {
	t.Helper()
	wasm, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	h, err := New(Config{Instances: 1, CacheDir: filepath.Join(scratch, "compiled")},
		slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return chainOf(t, h, Step{Name: "goguest", Module: loadOf(t, h, wasm), Config: []byte(config)}), &log
}

func TestGoSDK(t *testing.T) {
	c, log := goGuest(t, `{"good":1}`)
	b := batchOf(
		`{"do":"key","key":"abc"}`,
		`{"do":"key","key":"a\tb"}`,
		`{"do":"computed","key":1}`,
		`{"do":"computed","key":22}`,
		`{"do":"empty"}`,
		`{"do":"header"}`,
		`{"do":"config"}`,
		`{"do":"reject"}`,
		`{"do":"count"}`,
		`{"do":"arrived"}`,
		`{"do":"nothing"}`,
	)
	b.Arrived = 42
	b.Headers = []event.Attr{{Name: []byte("x-other"), Value: []byte("o")}, {Name: []byte("x-tenant"), Value: []byte("t1")}}
	process(t, c, b)
	want := "accepted key=abc\naccepted key=a\tb\naccepted key=<1>\naccepted key=<22>\naccepted key=\naccepted key=t1\n" +
		"accepted key={\"good\":1}\nrejected plugin_rejected\naccepted\naccepted key=42\naccepted\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if got := string(b.Events[2].Data) + string(b.Events[3].Data); got != "<1>!<22>!" {
		t.Errorf("replaced by %s", got)
	}
	if n := c.places[0].active.bill.counters[3].Load(); n != 5 || !strings.Contains(log.String(), "level=WARN msg=counted") {
		t.Errorf("counter %d, log %s", n, log)
	}
}

// Keys that need memory of their own stay valid until the host has read them, however many there are.
func TestGoSDKKeepsManyComputedKeys(t *testing.T) {
	c, _ := goGuest(t, "")
	for range 3 {
		b := &event.Batch{Stream: "s"}
		for i := range 1000 {
			b.Events = append(b.Events, event.Event{Data: fmt.Appendf(nil, `{"do":"computed","key":"%0*d"}`, i%500+1, i)})
		}
		process(t, c, b)
		for i, e := range b.Events {
			if want := fmt.Sprintf(`<"%0*d">`, i%500+1, i); string(e.Key) != want || string(e.Data) != want+"!" {
				t.Fatalf("event %d: key %s, data %s", i, e.Key, e.Data)
			}
		}
	}
}

// A panic costs one event and one instance; the log has what the guest printed.
func TestGoSDKPanics(t *testing.T) {
	c, log := goGuest(t, "")
	b := batchOf(`{"do":"key","key":"a"}`, `{"do":"panic"}`, `{"do":"key","key":"b"}`)
	process(t, c, b)
	if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if !strings.Contains(log.String(), `msg="panic: as told"`) {
		t.Errorf("errors %v, log %s", b.Errors, log)
	}
}

func TestGoSDKTakesAllMemory(t *testing.T) {
	c, _ := goGuest(t, "")
	b := batchOf(`{"do":"key","key":"a"}`, `{"do":"all memory"}`, `{"do":"key","key":"b"}`)
	process(t, c, b)
	if got, want := outcomes(b), "accepted key=a\nrejected plugin_failed\naccepted key=b\n"; got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if !strings.Contains(b.Errors[0].Detail, "OOM") {
		t.Errorf("errors %v", b.Errors)
	}
}

// A guest that makes garbage is collected: its memory stays far below the limit.
func TestL01GarbageIsCollected(t *testing.T) {
	c, _ := goGuest(t, "")
	b := &event.Batch{Stream: "s"}
	for range 256 {
		b.Events = append(b.Events, event.Event{Data: []byte(`{"do":"garbage"}`)})
	}
	for range 100 { // 256 MB in all
		process(t, c, b)
	}
	if n := c.places[0].active.bill.memory.Load(); n > 16<<20 {
		t.Errorf("the guest grew to %d bytes", n)
	}
}

func TestGoSDKRefusesAConfiguration(t *testing.T) {
	wasm, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	h := hostOf(t, Config{Instances: 1, CacheDir: filepath.Join(scratch, "compiled")})
	_, err = h.NewChain(context.Background(), []Step{{Name: "goguest", Module: loadOf(t, h, wasm), Config: []byte(`{"bad":1}`)}}, Rules{})
	if err == nil || !strings.Contains(err.Error(), "no bad configuration, please") {
		t.Errorf("error %v", err)
	}
}
