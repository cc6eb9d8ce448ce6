package faults

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// figure prints a figure beside its target; with CHECK=1 a missed one fails the test.
func figure(t *testing.T, met bool, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	fmt.Printf("%-4s %s\n", map[bool]string{true: "met", false: "MISS"}[met], text)
	if !met && os.Getenv("CHECK") == "1" {
		t.Error(text)
	}
}

// onDemand skips what only says how fast something is.
func onDemand(t *testing.T) {
	t.Helper()
	if os.Getenv("DELIVERY") == "" {
		t.Skip("only with make bench-delivery")
	}
}

// volley is many connections that send the same request over and over.
type volley struct {
	connections int
	request     []byte
	pause       time.Duration // between the starts of two requests of a connection; 0: none
}

// fire sends for so long; it returns how many requests were acknowledged, and the times they took, the shortest first.
func (v *volley) fire(t *testing.T, addr string, d time.Duration) (good int, took []time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var refused atomic.Int64
	end := time.Now().Add(d)
	for range v.connections {
		all.Go(func() {
			own := v.one(t, addr, end, &refused)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	all.Wait()
	slices.Sort(took)
	if n := refused.Load(); n > 0 {
		t.Logf("%d requests were refused", n)
	}
	return len(took), took
}

func (v *volley) one(t *testing.T, addr string, end time.Time, refused *atomic.Int64) (took []time.Duration) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer conn.Close()
	buf := make([]byte, 16<<10)
	next := time.Now().Add(rand.N(v.pause + 1))
	for {
		if v.pause > 0 {
			<-time.After(time.Until(next))
			next = next.Add(v.pause)
		}
		began := time.Now()
		if began.After(end) {
			return took
		}
		if _, err := conn.Write(v.request); err != nil {
			t.Error(err)
			return took
		}
		status, err := answer(conn, buf)
		if err != nil {
			t.Error(err)
			return took
		}
		if status >= 300 {
			refused.Add(1)
			<-time.After(5 * time.Millisecond)
			continue
		}
		took = append(took, time.Since(began))
	}
}

// answer reads one answer into buf and returns its status. It looks at no more than it needs: who sends shares the processors with the
// gateway.
func answer(conn net.Conn, buf []byte) (status int, err error) {
	for n, whole := 0, -1; whole < 0 || n < whole; {
		if n == len(buf) {
			return 0, fmt.Errorf("an answer of more than %d bytes", n)
		}
		more, err := conn.Read(buf[n:])
		if err != nil {
			return 0, err
		}
		n += more
		head, _, complete := bytes.Cut(buf[:n], []byte("\r\n\r\n"))
		if !complete || whole >= 0 {
			continue
		}
		_, after, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
		length, _, _ := bytes.Cut(after, []byte("\r\n"))
		size, errSize := strconv.Atoi(string(length))
		status, err = strconv.Atoi(string(head[len("HTTP/1.1 "):min(len(head), len("HTTP/1.1 200"))]))
		if err = errors.Join(err, errSize); err != nil {
			return 0, fmt.Errorf("an answer that is not understood: %w: %q", err, head)
		}
		whole = len(head) + 4 + size
	}
	return status, nil
}

// request is a POST of so many events of 200 bytes or so.
func request(level string, events int) []byte {
	var body bytes.Buffer
	for n := range events {
		fmt.Fprintf(&body, `{"k":"key-%d","method":"GET","path":"/items/%d","status":200,"agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36","ms":%d,"at":"2026-03-02T08:00:11.%03dZ"}`+"\n",
			rand.IntN(1000), rand.IntN(100000), rand.IntN(900), n%1000)
	}
	return fmt.Appendf(nil, "POST /v1/streams/s/events?ack=%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", level, body.Len(), body.String())
}

// fsync returns how long writing 16 KiB more and syncing them takes, the median of many.
func fsync(t *testing.T, folder string) time.Duration {
	t.Helper()
	f, err := os.CreateTemp(folder, "fsync")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close(); os.Remove(f.Name()) }()
	var took []time.Duration
	for range 100 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 16<<10)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return percentile(took, 50)
}

// floor returns how long one frame takes that nothing else is in the way of: 4 KiB over zeros and a sync of data, each ms.
func floor(t *testing.T, folder string) (p50, p99 time.Duration) {
	t.Helper()
	const frames, size = 1000, 4 << 10
	f, err := os.CreateTemp(folder, "floor")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close(); os.Remove(f.Name()) }()
	if _, err := f.Write(make([]byte, frames*size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	frame := bytes.Repeat([]byte("frame"), size/5)
	var took []time.Duration
	for i := range frames {
		<-time.After(time.Millisecond)
		began := time.Now()
		if _, err := f.WriteAt(frame, int64(i*size)); err != nil {
			t.Fatal(err)
		}
		if err := datasync(f); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return percentile(took, 50), percentile(took, 99)
}

// A10: with 100 clients, what durable costs beside accepted, and how long a request waits beside the disk's sync.
func TestA10DurableAgainstAccepted(t *testing.T) {
	onDemand(t)
	const clients, during, linger = 100, 5 * time.Second, time.Millisecond
	for _, events := range []int{1, 500} {
		rate := map[string]float64{}
		var accepted time.Duration // p50 at full load
		for _, level := range []string{"accepted", "durable"} {
			b := newBed(t, result{}).with("spool.max_bytes=8GiB")
			g := start(t, b.data, "", b.settings...)
			v := volley{connections: clients, request: request(level, events)}
			v.fire(t, strings.TrimPrefix(g.http, "http://"), time.Second) // warm
			n, took := v.fire(t, strings.TrimPrefix(g.http, "http://"), during)
			rate[level] = float64(n) / during.Seconds()
			if level == "accepted" {
				accepted = percentile(took, 50)
			}
			if level == "durable" {
				full := took
				sync := fsync(t, b.data)
				figure(t, rate["durable"] >= rate["accepted"]/2, "A10 %3d events a request: accepted %s requests/s, durable %s requests/s: %.0f %% (target 50 %%)", events,
					thousands(int(rate["accepted"])), thousands(int(rate["durable"])), 100*rate["durable"]/rate["accepted"])
				figure(t, percentile(full, 50) <= linger+2*sync, "    full load: p50 %.1f ms, p99 %.1f ms; a sync takes %.2f ms (target p50 %.1f ms)",
					ms(percentile(full, 50)), ms(percentile(full, 99)), ms(sync), ms(linger+2*sync))
				v.pause = time.Duration(2 * clients / rate[level] * float64(time.Second))
				_, half := v.fire(t, strings.TrimPrefix(g.http, "http://"), during)
				figure(t, percentile(half, 99) <= linger+4*sync, "    half load: p50 %.1f ms, p99 %.1f ms (target p99 %.1f ms)",
					ms(percentile(half, 50)), ms(percentile(half, 99)), ms(linger+4*sync))
				alone, longest := floor(t, b.data)
				fmt.Printf("         the floor: accepted, which waits for no disk, has p50 %.1f ms at full load; a frame alone on the disk p50 %.2f ms, p99 %.1f ms\n",
					ms(accepted), ms(alone), ms(longest))
			}
			g.kill()
		}
	}
}

// A spool of 1 GiB is read at a start in less than 2 s and 100 MiB.
func TestRecoveryOfALargeSpool(t *testing.T) {
	onDemand(t)
	b := newBed(t, result{}).onNode().with("spool.max_bytes=4GiB", "http.request_timeout=5s")
	b.node.Stop()
	g := start(t, b.data, "", b.settings...)
	empty := g.resident(t)
	noise := make([]byte, 60_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	event := base64.StdEncoding.EncodeToString(noise)
	var body bytes.Buffer
	for i := range 20 {
		fmt.Fprintf(&body, `{"k":"key-%d","x":"%s"}`+"\n", i, event[i*100:])
	}
	post := fmt.Appendf(nil, "POST /v1/streams/s/events?ack=durable HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", body.Len(), body.String())
	v := volley{connections: 4, request: post}
	for g.metric("headgate_spool_bytes") < 1<<30 {
		v.fire(t, strings.TrimPrefix(g.http, "http://"), time.Second)
	}
	g.kill()
	size := int64(0)
	segments, _ := filepath.Glob(filepath.Join(b.data, "spool", "s", "*.seg"))
	for _, s := range segments {
		if info, err := os.Stat(s); err == nil {
			size += info.Size()
		}
	}
	g = start(t, b.data, "", b.settings...)
	frames, more := g.metric("headgate_spool_frames"), g.resident(t)-empty
	figure(t, g.recovery < 2*time.Second, "recovery of a spool of %d MiB, %.0f frames: %.2f s (target 2 s)", size>>20, frames, g.recovery.Seconds())
	figure(t, more < 100<<20, "    and %d MiB more memory than an empty one (target 100 MiB)", more>>20)
	b.node.Start()
	began := time.Now()
	g.until("it is healthy", func() bool { status, _ := g.get("/readyz"); return status == 200 })
	figure(t, time.Since(began) < 5*time.Second, "backend back, healthy after %.1f s (target 5 s)", time.Since(began).Seconds())
	g.kill()
}

// resident returns the memory that is resident now.
func (g *gateway) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		t.Skip("SKIPPED: no /proc here")
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	n := 0
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// What came while the backend was away goes out at least twice as fast as it came, while more comes in.
func TestDrain(t *testing.T) {
	onDemand(t)
	b := newBed(t, result{}).onNode().with("spool.max_bytes=4GiB")
	b.node.Stop()
	g := start(t, b.data, "", b.settings...)
	v := volley{connections: 8, request: request("durable", 100)}
	const away = 10 * time.Second
	n, _ := v.fire(t, strings.TrimPrefix(g.http, "http://"), away)
	in := float64(100*n) / away.Seconds()
	began := time.Now()
	b.node.Start()
	g.idle()
	out := float64(100*n) / time.Since(began).Seconds()
	figure(t, out >= 2*in, "drain: %s events/s in for %s without a backend, %s events/s out (target twice as fast)", thousands(int(in)), away, thousands(int(out)))
	g.kill()
}
