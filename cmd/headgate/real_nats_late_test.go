package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsWire is between a gateway and a NATS server: it can keep what the gateway sends, and bring it when the gateway is no more.
type natsWire struct {
	t      *testing.T
	server string
	listen net.Listener

	mu    sync.Mutex
	cond  *sync.Cond
	keeps bool
	kept  []byte // bytes of messages with events that are kept
}

func newWire(t *testing.T, server string) *natsWire {
	w := &natsWire{t: t, server: server}
	w.cond = sync.NewCond(&w.mu)
	var err error
	if w.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.listen.Close() })
	go func() {
		for {
			c, err := w.listen.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *natsWire) url() string { return "nats://" + w.listen.Addr().String() }

// carry brings what a connection sends, unless it has to keep it; the server's end stays open when the gateway's is not.
func (w *natsWire) carry(c net.Conn) {
	s, err := net.Dial("tcp", w.server)
	if err != nil {
		c.Close()
		return
	}
	go func() { _, _ = io.Copy(c, s); c.Close() }()
	defer s.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		w.mu.Lock()
		if w.keeps {
			w.kept = append(w.kept, b[:n]...)
			w.cond.Broadcast()
		}
		for w.keeps {
			w.cond.Wait()
		}
		w.mu.Unlock()
		if _, bad := s.Write(b[:n]); bad != nil || err != nil {
			return
		}
	}
}

func (w *natsWire) keep(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keeps = on
	w.cond.Broadcast()
}

func (w *natsWire) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.kept, []byte(text))
}

// A gateway is stopped by SIGSTOP while a publish of it is on its way to an external NATS. It is killed, and the next one starts on its
// folder; or it goes on beside one that was started on a copy of the folder. What comes late is refused: nothing that the
// new one acknowledged is lost, nothing is there twice, and the old one stores nothing more.
func TestN04APublishThatComesLate(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		t.Run(fmt.Sprint("the old one goes on: ", goesOn), func(t *testing.T) { publishLate(t, goesOn) })
	}
}

func publishLate(t *testing.T, goesOn bool) {
	server := newNATS(t, "max_payload: 8MB")
	server.start()
	between := newWire(t, server.addr)
	data := t.TempDir()
	settings := func(url string) []string {
		return []string{"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q, max_bytes: 1GiB}}}", url),
			"--set", "streams={s: {backend: bus, key: {json: /k}, partitions: 1}}"}
	}
	old := startGateway(t, data, settings(between.url())...)
	if status, answer := old.post("s", `{"k":"a","n":"before"}`, "ack=delivered"); status != 200 {
		t.Fatal(status, answer)
	}
	between.keep(true)
	var late sync.WaitGroup
	late.Go(func() { _, _ = old.tryPost(t.Context(), `{"k":"a","n":"late"}`, "ack=accepted") }) // so that it is in no spool for half a second
	old.until("the publish is on its way", func() bool { return between.has("HPUB headgate.s.0.") })
	if err := old.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if goesOn {
		other := t.TempDir()
		if out, err := exec.Command("cp", "-a", data+"/.", other).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		data = other
		os.Remove(data + "/lock")
	} else {
		old.kill()
	}
	next := startGateway(t, data, settings(server.url())...)
	next.until("the lane is claimed", func() bool { return claims(t, server) == 2 }) // once by each
	between.keep(false)
	for n := range 3 {
		if status, answer := next.post("s", fmt.Sprintf(`{"k":"a","n":"after-%d"}`, n), "ack=delivered"); status != 200 {
			t.Fatal(status, answer)
		}
	}
	if goesOn {
		if err := old.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		old.until("the old one says that its lane was taken over", func() bool {
			return strings.Contains(old.log.String(), "has taken the lane over")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it would be told after 30 that nobody knows
		defer cancel()
		if status, err := old.tryPost(ctx, `{"k":"a","n":"of the old one"}`, "ack=delivered"); err == nil && status == 200 {
			t.Error("the old one still delivers")
		}
	}
	if status, answer := next.post("s", `{"k":"a","n":"last"}`, "ack=delivered"); status != 200 {
		t.Error(status, answer)
	}
	seen := map[string]int{}
	for _, r := range next.tail("s") {
		seen[r.Data]++
	}
	for _, n := range []string{"before", "after-0", "after-1", "after-2", "last"} {
		if seen[fmt.Sprintf(`{"k":"a","n":%q}`, n)] != 1 {
			t.Errorf("%s: %v", n, seen)
		}
	}
	// The late one was in no spool, unless the old process had the time to write it.
	if n := len(seen); n < 5 || n > 6 || seen[`{"k":"a","n":"of the old one"}`] > 0 || seen[`{"k":"a","n":"late"}`] > 1 {
		t.Errorf("%v", seen)
	}
	if strings.Contains(next.log.String(), "second writer") {
		t.Errorf("the lane of the new one stopped:\n%s", next.log)
	}
	if goesOn {
		old.kill()
	}
	late.Wait()
}

// tryPost is post to the stream s of a gateway that may be gone.
func (p *process) tryPost(ctx context.Context, body, query string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.http+"/v1/streams/s/events?"+query, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// claims counts the markers of starts on the stream s.
func claims(t *testing.T, server *natsServer) (n int) {
	t.Helper()
	nc, err := nats.Connect(server.url())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "HEADGATE_s")
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		if m, err := s.GetMsg(t.Context(), seq); err == nil && m.Header.Get("Headgate-Marker") == "claim" {
			n++
		}
	}
	return n
}
