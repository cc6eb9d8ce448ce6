package ingest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/headgate-io/headgate/internal/race"
)

// TestAnswersOverHTTP3AreFrames reads what is written for an answer.
func TestAnswersOverHTTP3AreFrames(t *testing.T) {
	h := &h3{edge: &edge{cors: newCORS([]string{"https://app.example.com"})}}
	a := answer{status: 202, mediaType: "application/json", doc: []byte(`{"a":1}`)}
	a.add("X-Request-Id", "mine")
	a.add("Headgate-Rejected", "2")
	for _, c := range []struct {
		name    string
		a       answer
		bare    bool
		frames  string // their types, and how many bytes of the last are there
		missing int    // bytes of the last frame
	}{
		{"document", a, false, "\x01\x00", 0},
		{"HEAD", a, true, "\x01", 0},
		{"none", answer{status: 204}, true, "\x01", 0},
		{"large", answer{status: 422, doc: bytes.Repeat([]byte("a"), mostRoom+1)}, false, "\x01\x00", mostRoom + 1},
	} {
		r := replies3.Get().(*reply3)
		text := r.compose(h, &c.a, []string{"https://app.example.com"}, c.bare)
		kinds, left := "", 0
		for rest := bytes.NewReader(text); rest.Len() > 0; {
			kind, _ := quicvarint.Read(rest)
			size, err := quicvarint.Read(rest)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			kinds += string(rune(kind))
			payload, _ := io.ReadAll(io.LimitReader(rest, int64(size)))
			left = int(size) - len(payload)
			if kind == frameHeaders {
				checkAnswerFields(t, c.a, payload)
			} else if left == 0 && !bytes.Equal(payload, c.a.doc) {
				t.Errorf("%s: the document is %q", c.name, payload)
			}
		}
		if kinds != c.frames || left != c.missing {
			t.Errorf("%s: frames %q and %d bytes missing, want %q and %d", c.name, kinds, left, c.frames, c.missing)
		}
		replies3.Put(r)
	}
}

func checkAnswerFields(t *testing.T, a answer, block []byte) {
	t.Helper()
	next, got := qpack.NewDecoder().Decode(block), map[string]string{}
	for {
		f, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[f.Name]; twice || f.Name != strings.ToLower(f.Name) || f.IsPseudo() != (len(got) == 0) {
			t.Errorf("the field %v behind %v", f, got)
		}
		got[f.Name] = f.Value
	}
	want := []string{":status", "date", "vary", "access-control-allow-origin", "access-control-expose-headers"}
	if a.status != http.StatusNoContent {
		want = append(want, "content-length")
	}
	if a.mediaType != "" {
		want = append(want, "content-type")
	}
	for _, f := range a.fields[:a.n] {
		want = append(want, strings.ToLower(f.name))
	}
	for _, name := range want {
		if got[name] == "" {
			t.Errorf("no %s in %v", name, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %q", got, want)
	}
}

// brokenOff is where an answer was begun and its client is gone.
type brokenOff struct{ http.ResponseWriter }

func (brokenOff) HTTPStream() (*http3.Stream, error) { return nil, errors.New("reset") }

// A page that goes away while its CONNECT is answered needs no other answer, and its large document is paid back.
func TestNothingIsWrittenToAClientThatIsGone(t *testing.T) {
	b := unlimited()
	h := &h3{edge: &edge{core: &core{budget: b}}}
	h.write3(brokenOff{}, &http.Request{Method: http.MethodConnect}, &answer{status: 400, doc: make([]byte, mostRoom+1)})
	if held := b.Held(); held != 0 {
		t.Errorf("%d bytes of the budget are held", held)
	}
}

// What is allocated for a request over HTTP/3 beside what http3 allocates: the texts of its status and of the document's length.
func TestRequestsOverHTTP3AllocateLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget at random under the race detector")
	}
	from := &http.Request{Method: "POST", RequestURI: events, Host: "example.com", ContentLength: 200, Header: http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"200"}, "User-Agent": {"agent"}, "X-Many": {"b", "a"}}}
	found := new(head)
	if n := testing.AllocsPerRun(100, func() { found.read3(from) }); n > 0 {
		t.Errorf("reading a header allocates %v times", n)
	}
	if order := string(found.fields[len(found.fields)-3].Value) + string(found.fields[len(found.fields)-2].Value); order != "ba" {
		t.Errorf("values of a field come as %q", order)
	}
	h, r := &h3{edge: &edge{}}, replies3.Get().(*reply3)
	a := answer{status: 202, mediaType: "application/json", doc: make([]byte, 200)}
	a.add("X-Request-Id", "mine")
	if n := testing.AllocsPerRun(100, func() { r.compose(h, &a, nil, false) }); n > 3 { // and that of a second that begins
		t.Errorf("composing an answer allocates %v times", n)
	}
	c := new(h3Conn)
	if n := testing.AllocsPerRun(100, func() { c.client("192.0.2.1:1") }); n > 0 {
		t.Errorf("the client's address is made %v times", n)
	}
}
