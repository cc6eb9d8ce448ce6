package forwardtest

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/internal/freeport"
)

// Cut says where an answer breaks off.
type Cut int

// The connection is closed before anything is answered, after a part of the headers, or after a part of the body.
const (
	Whole Cut = iota
	BeforeHeaders
	InHeaders
	InBody
)

// Answer is what a Receiver does with one POST.
type Answer struct {
	Arrived chan<- struct{} // closed when the POST is there; may be nil
	After   <-chan struct{} // comes next: nothing happens before it, or only the end of the connection
	Status  int             // 0: 200
	Header  map[string]string
	Body    string
	Cut     Cut
	Store   bool // the run is stored though the answer is cut or not 2xx
}

// Receiver is an HTTP node on a port of loopback that follows a script and stores the runs that it takes.
type Receiver struct {
	URL       string
	Recognise bool // an Idempotency-Key that is stored is answered 200 and not stored again

	t      testing.TB
	addr   string
	server *http.Server
	served chan struct{}

	mu     sync.Mutex
	script []Answer
	judge  func(*forward.Run) Answer
	runs   []forward.Run
	heads  []http.Header
	posts  int
}

// NewReceiver starts a receiver that ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{t: t, addr: freeport.TCP(t)}
	r.Start()
	r.URL = "http://" + r.addr + "/ingest?from=headgate"
	t.Cleanup(r.Stop)
	return r
}

// Start listens, after a Stop at the same address.
func (r *Receiver) Start() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server = &http.Server{Handler: r}
	server, served := r.server, make(chan struct{})
	r.served = served
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with Stop
	}()
}

// Stop closes the port and all connections. It may be called twice.
func (r *Receiver) Stop() {
	_ = r.server.Close() // what is open is closed in any case
	<-r.served
}

// Script appends answers, which the next POSTs get in turn; without one a POST gets what Judge says.
func (r *Receiver) Script(answers ...Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = append(r.script, answers...)
}

// Judge has f answer POSTs without an answer in the script.
func (r *Receiver) Judge(f func(*forward.Run) Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge = f
}

// Runs returns what is stored, in the order of storing.
func (r *Receiver) Runs() []forward.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

// Heads returns the headers of the runs stored.
func (r *Receiver) Heads() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heads)
}

// Posts returns how many POSTs came in whole.
func (r *Receiver) Posts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posts
}

// ServeHTTP takes a POST; anything else is 404.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	payload, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if req.Method != http.MethodPost || req.URL.RequestURI() != "/ingest?from=headgate" {
		http.NotFound(w, req)
		return
	}
	run := parse(req.Header, payload)
	a := r.next(&run)
	if a.Arrived != nil {
		close(a.Arrived)
	}
	if a.After != nil {
		select {
		case <-a.After:
		case <-req.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if a.Store || a.Cut == Whole && a.Status < 300 {
		r.store(run, req.Header)
	}
	a.give(w)
}

func (r *Receiver) next(run *forward.Run) (a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts++
	if len(r.script) > 0 {
		a, r.script = r.script[0], r.script[1:]
	} else if r.judge != nil {
		a = r.judge(run)
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	return a
}

func (r *Receiver) store(run forward.Run, head http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(r.runs, func(s forward.Run) bool { return s.ID == run.ID })
	if r.Recognise && known {
		return
	}
	r.runs, r.heads = append(r.runs, run), append(r.heads, head)
}

// give writes the answer, or as much of it as its cut lets through.
func (a Answer) give(w http.ResponseWriter) {
	if a.Cut == Whole {
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body) // to a client that may have gone
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	text := map[Cut]string{InHeaders: "HTTP/1.1 200 OK\r\nContent-Le", InBody: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of i"}
	_, _ = io.WriteString(conn, strings.Replace(text[a.Cut], "200", strconv.Itoa(a.Status), 1)) // likewise
}

// parse reads a run from the headers it travels with.
func parse(h http.Header, payload []byte) forward.Run {
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(h.Get(name), 10, 64)
		return n
	}
	run := forward.Run{
		Stream: h.Get("Headgate-Stream"), Partition: int32(number("Headgate-Partition")),
		First: number("Headgate-First-Seq"), Last: number("Headgate-Last-Seq"), Events: int(number("Headgate-Count")),
		Frames: 1, TableVersion: number("Headgate-Table-Version"),
		ContentType: h.Get("Content-Type"), ContentEncoding: h.Get("Content-Encoding"), ID: h.Get("Idempotency-Key"), Payload: payload,
	}
	if _, frames, ok := strings.Cut(run.ID, "+"); ok {
		run.Frames, _ = strconv.Atoi(frames)
	}
	return run
}
