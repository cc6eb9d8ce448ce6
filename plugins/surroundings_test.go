package plugins

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tetratelabs/wazero/api"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// flat is a guest's memory for host functions that are called without a guest.
type flat struct {
	api.Memory
	bytes []byte
}

func (f flat) Read(ptr, n uint32) ([]byte, bool) { return span(f.bytes, ptr, n) }
func (f flat) Size() uint32                      { return uint32(len(f.bytes)) }

func (f flat) WriteUint32Le(ptr, v uint32) bool {
	p, ok := span(f.bytes, ptr, 4)
	if ok {
		putU32(p, 0, v)
	}
	return ok
}

func (f flat) WriteUint64Le(ptr uint32, v uint64) bool {
	p, ok := span(f.bytes, ptr, 8)
	if ok {
		binary.LittleEndian.PutUint64(p, v)
	}
	return ok
}

func logged() (*surroundings, *bytes.Buffer) {
	var out bytes.Buffer
	return &surroundings{log: slog.New(slog.NewTextHandler(&out, nil)), bill: &bill{}}, &out
}

// Case L20: 10,000 lines of 10 KiB in a second.
func TestL20LogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := logged()
		g := newGuest(s, nil)
		line := []byte(strings.Repeat("x", 10<<10) + "\n")
		for range 10_000 {
			g.write(slog.LevelInfo, line)
		}
		if n := strings.Count(out.String(), "\n"); n != linesPerSecond || out.Len() > linesPerSecond*(abi.MaxLogLine+100) {
			t.Errorf("%d lines, %d bytes", n, out.Len())
		}
		if n := s.bill.droppedLines.Load(); n != 10_000-linesPerSecond {
			t.Errorf("%d lines counted as dropped", n)
		}
		<-time.After(time.Second)
		out.Reset()
		g.write(slog.LevelInfo, []byte("again\n"))
		if !strings.Contains(out.String(), "again") {
			t.Error("nothing is logged a second later")
		}
	})
}

func TestLinesComeInPieces(t *testing.T) {
	s, out := logged()
	g := newGuest(s, nil)
	for _, piece := range []string{"pan", "ic: ", "boom\n\ngor", "outine 1\nx\xff\n", "rest"} {
		g.write(slog.LevelWarn, []byte(piece))
	}
	g.flush(slog.LevelWarn)
	for _, want := range []string{`msg="panic: boom"`, `msg="goroutine 1"`, "msg=\"x\uFFFD\"", "msg=rest"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out, want)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines", n)
	}
}

func TestGuestLogs(t *testing.T) {
	var out bytes.Buffer
	h, err := New(Config{Instances: 1}, slog.New(slog.NewTextHandler(&out, nil)), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	m := loadOf(t, h, scripted(false).bytes())
	c := chainOf(t, h, Step{Name: "talker", Module: m})
	process(t, c, batchOf("loud and clear"))
	for _, want := range []string{`msg="loud and clear"`, "plugin=talker", "version=" + shortDigest(m.Digest)} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", &out, want)
		}
	}
}

// Case L16: no files, no environment; clock, random and exit as documented. The numbers are WASI's.
func TestL16F68WASICalls(t *testing.T) {
	const size = 4096
	tests := []struct {
		name   string
		params []uint64
		want   uint64
		check  func(p []byte) bool
	}{
		{"environ_sizes_get", []uint64{0, 4}, 0, func(p []byte) bool { return u32(p, 0) == 0 && u32(p, 4) == 0 }},
		{"args_sizes_get", []uint64{0, size - 3}, wasiFault, nil},
		{"args_get", []uint64{0, 0}, 0, nil},
		{"clock_res_get", []uint64{0, 8}, 0, func(p []byte) bool { return binary.LittleEndian.Uint64(p[8:]) == 1e6 }},
		{"clock_time_get", []uint64{0, 1, 8}, 0, func(p []byte) bool {
			now := int64(binary.LittleEndian.Uint64(p[8:]))
			return now%1e6 == 0 && time.Since(time.Unix(0, now)).Abs() < time.Hour
		}},
		{"clock_time_get", []uint64{1, 1, size - 7}, wasiFault, nil},
		{"clock_time_get", []uint64{2, 1, 8}, wasiInvalid, nil},
		{"random_get", []uint64{16, 32}, 0, func(p []byte) bool { return !bytes.Equal(p[16:48], bytes.Repeat([]byte{0xAA}, 32)) }},
		{"random_get", []uint64{size - 1, 2}, wasiFault, nil},
		{"random_get", []uint64{0xFFFFFFFF, 0xFFFFFFFF}, wasiFault, nil},
		{"sched_yield", []uint64{0}, 0, nil},
		{"path_open", []uint64{3, 0, 0, 0, 0, 0, 0, 0, 0}, wasiBadFile, nil},
		{"fd_prestat_get", []uint64{3, 0}, wasiBadFile, nil},
		{"sock_accept", []uint64{3, 0, 0}, wasiBadFile, nil},
		{"fd_write", []uint64{3, 0, 0, 0}, wasiBadFile, nil},
		{"fd_write", []uint64{1, 0, 0x20000001, 0}, wasiFault, nil}, // 4 GiB of vectors, and 8 bytes
		{"fd_write", []uint64{1, 0, 1, 0}, wasiFault, nil},          // a vector of 0xAAAAAAAA bytes
		{"poll_oneoff", []uint64{0, 0, 0x10000000, 0}, wasiInvalid, nil},
		{"poll_oneoff", []uint64{0, 256, 2, 512}, 0, func(p []byte) bool { // clock, and one that is none
			return u32(p, 512) == 2 && u32(p, 256) == 0xAAAAAAAA && p[264] == wasiBadFile && p[296] == wasiBadFile
		}},
	}
	for _, tt := range tests {
		p := bytes.Repeat([]byte{0xAA}, size)
		s, _ := logged()
		stack := append(tt.params, 0)
		wasiFunctions[tt.name].call(newGuest(s, nil), flat{bytes: p}, stack)
		if stack[0] != tt.want || tt.check != nil && !tt.check(p) {
			t.Errorf("%s%v = %d, want %d", tt.name, tt.params, stack[0], tt.want)
		}
	}
}

func TestExitIsAPanicThatTheHostCatches(t *testing.T) {
	defer func() {
		var left exit
		if err, ok := recover().(error); !ok || !errors.As(err, &left) || left.code != 3 {
			t.Errorf("recovered %v", err)
		}
	}()
	wasiFunctions["proc_exit"].call(nil, flat{}, []uint64{3})
}

func TestHeadersOfTheRequest(t *testing.T) {
	headers := []event.Attr{
		{Name: []byte("x-a"), Value: []byte("1")},
		{Name: []byte("authorization"), Value: []byte("Bearer secret")},
		{Name: []byte("cookie"), Value: []byte("secret")},
		{Name: []byte("x-b"), Value: nil},
		{Name: []byte("x-long"), Value: make([]byte, 1<<16)},
	}
	got := make([]byte, headersSize(headers))
	putHeaders(got, headers)
	if want := "\x03\x00x-a\x01\x001\x03\x00x-b\x00\x00"; string(got) != want {
		t.Errorf("got %q", got)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := New(Config{Instances: 1, MaxMemory: 4 << 20}, slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	c := chainOf(t, h, Step{Name: "p", Module: loadOf(t, h, scripted(false).bytes())})
	process(t, c, batchOf("ka", "0", "d", "r", "vx", "n", "t", "m", "kb"))
	got := gather(t, reg)
	for name, want := range map[string]float64{
		"calls_total": 3, "events_total kept": 3, "events_total replaced": 1, "events_total filtered": 1,
		"events_total rejected": 1, "events_total failed": 3, "failures_total TRAP": 1, "failures_total OOM": 1,
		"failures_total NOT_WRITTEN": 1, "failures_total EXIT": 0, "replacements_total": 2, "memory_bytes": 4 << 20,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
	if got["seconds_total"] <= 0 {
		t.Error("no time was counted")
	}
}

// gather returns the values of headgate_plugin_ metrics by name and last label.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := strings.TrimPrefix(f.GetName(), "headgate_plugin_")
			for _, l := range m.Label {
				if n := l.GetName(); n != "plugin" && n != "digest" && l.GetValue() != "active" {
					name += " " + l.GetValue()
				}
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

// Case L09: a guest finds zeros in all of its fresh memory, whatever its predecessor left there.
func TestL09FreshMemoryIsZero(t *testing.T) {
	for range 3 {
		l := &linear{limit: 1 << 20}
		l.Allocate(0, 1<<20)
		p := l.Reallocate(1 << 20)
		if p == nil || bytes.Count(p, []byte{0}) != len(p) {
			t.Fatal("not zero")
		}
		for i := range p {
			p[i] = 0xAA
		}
		if l.Reallocate(1<<20+1) != nil || !l.refused {
			t.Error("more than the limit was given")
		}
		l.Free()
		l.Free()
	}
}

func TestStreamNumber(t *testing.T) {
	if got := streamNumber("foobar"); got != 0xBF9CF968 { // a vector of the algorithm's authors
		t.Errorf("%#x", got)
	}
}

func TestCancelledWhileAnotherCompiles(t *testing.T) {
	h := hostOf(t, Config{})
	h.compile <- struct{}{}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Admit(ctx, base().bytes()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
