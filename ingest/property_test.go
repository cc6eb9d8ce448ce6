package ingest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// sent is a request: what its events are is known because it was made of them.
type sent struct {
	header []string
	body   string
	events []string
}

// Characters of JSON text: all that need care, and some that do not.
var characters = rapid.SampledFrom([]string{"a", "é", "€", "😀", " ", `\"`, `\\`, `\/`, `\n`, `\u0000`, `\u00e9`, `\ud83d\ude00`, `\ud800`, "{", "}", "[", "]", ",", ":", "\u2028", "\x7f"})

func drawText(t *rapid.T, max int) string {
	return `"` + strings.Join(rapid.SliceOfN(characters, 0, max).Draw(t, "text"), "") + `"`
}

// drawJSON makes a JSON value; space is what may stand between its parts.
func drawJSON(t *rapid.T, depth int, space *rapid.Generator[string]) string {
	s := func() string { return space.Draw(t, "space") }
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
	case 1, 2:
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,4})?([eE][-+]?[0-9]{1,3})?`).Draw(t, "number")
	case 3:
		return drawText(t, 6)
	}
	open, end := "[", "]"
	if kind == 5 {
		open, end = "{", "}"
	}
	var parts []string
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		part := drawJSON(t, depth-1, space)
		if kind == 5 { // names may be doubled
			part = rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `""`}).Draw(t, "name") + s() + ":" + s() + part
		}
		parts = append(parts, s()+part+s())
	}
	return open + strings.Join(parts, ",") + s() + end
}

var (
	inLine   = rapid.SampledFrom([]string{"", "", " ", "\t", " \r "})
	anywhere = rapid.SampledFrom([]string{"", "", " ", "\n", "\r\n", "\t"})
)

// drawLines puts each event into a line; blank are lines that are no events.
func drawLines(t *rapid.T, events, blank []string) string {
	var b strings.Builder
	end := func() { b.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")) }
	for i, e := range events {
		for range rapid.IntRange(0, 2).Draw(t, "blank lines") {
			b.WriteString(rapid.SampledFrom(blank).Draw(t, "blank"))
			end()
		}
		b.WriteString(e)
		if i+1 < len(events) || rapid.Bool().Draw(t, "last end") {
			end()
		}
	}
	return b.String()
}

func drawEvents(t *rapid.T, draw func() string) (all []string) {
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		all = append(all, draw())
	}
	return all
}

// array joins events as a JSON array.
func array(t *rapid.T, events []string) string {
	var parts []string
	for _, e := range events {
		parts = append(parts, anywhere.Draw(t, "before")+e+anywhere.Draw(t, "behind"))
	}
	return anywhere.Draw(t, "space") + "[" + strings.Join(parts, ",") + "]" + anywhere.Draw(t, "space")
}

func drawBytes(t *rapid.T, min int) string {
	return string(rapid.SliceOfN(rapid.Byte(), min, 40).Draw(t, "bytes"))
}

func drawCloudEvent(t *rapid.T) string {
	members := []string{`"specversion":"1.0"`, `"id":"1"`, `"source":"/s"`, `"type" : "t"`, `"data":` + drawJSON(t, 2, anywhere)}
	return "{" + strings.Join(rapid.Permutation(members).Draw(t, "members"), ","+anywhere.Draw(t, "space")) + "}"
}

// drawSent makes a request in any framing.
func drawSent(t *rapid.T) (s sent) {
	switch f := framing(rapid.IntRange(0, int(binaryText)).Draw(t, "framing")); f {
	case prefixedJSON: // no request has it
		return drawSent(t)
	case oneOpaque:
		s = sent{[]string{rawType}, drawBytes(t, 1), nil}
		s.events = []string{s.body}
	case oneJSON:
		if rapid.Bool().Draw(t, "array") {
			s.events = drawEvents(t, func() string { return drawJSON(t, 3, anywhere) })
			s.header, s.body = []string{jsonType}, array(t, s.events)
			break
		}
		one := `{"x":` + drawJSON(t, 3, anywhere) + "}"
		s = sent{[]string{jsonType}, anywhere.Draw(t, "before") + one + anywhere.Draw(t, "behind"), []string{one}}
	case lines:
		s.events = drawEvents(t, func() string { return inLine.Draw(t, "before") + drawJSON(t, 3, inLine) })
		s.header, s.body = []string{ndjson}, drawLines(t, s.events, []string{"", " ", "\t \t"})
	case textLines:
		s.events = drawEvents(t, func() string { return rapid.StringMatching(`[^\n]{0,10}[^\n\r]`).Draw(t, "line") })
		s.header, s.body = []string{textType}, drawLines(t, s.events, []string{""})
	case prefixed:
		s.events = drawEvents(t, func() string { return drawBytes(t, 0) })
		s.header = []string{"Content-Type: " + wire.TypePrefixed}
		for _, e := range s.events {
			s.body = string(wire.AppendEvent([]byte(s.body), []byte(e), wire.Prefixed))
		}
	case structured:
		one := drawCloudEvent(t)
		s = sent{[]string{ceType}, anywhere.Draw(t, "before") + one + anywhere.Draw(t, "behind"), []string{one}}
	case batched:
		s.events = drawEvents(t, func() string { return drawCloudEvent(t) })
		s.header, s.body = []string{ceBatchType}, array(t, s.events)
	case binaryOpaque:
		s = sent{ceHeaders(), drawBytes(t, 0), nil}
		s.events = []string{s.body}
	case binaryJSON:
		s = sent{ceHeaders(jsonType), anywhere.Draw(t, "before") + drawJSON(t, 3, anywhere), nil}
		s.events = []string{s.body}
	case binaryText:
		s = sent{ceHeaders(textType), rapid.String().Draw(t, "text"), nil}
		s.events = []string{s.body}
	}
	return s
}

// coders are the ways to code a body, by the name of the coding.
var coders = map[string][]func(string) string{
	"gzip":    {func(text string) string { return gzipped(text) }, func(text string) string { return gzipped(text[:len(text)/2], text[len(text)/2:]) }},
	"deflate": {zlibbed, deflated},
	"zstd":    {func(text string) string { return zstded(text) }},
	"br":      {brotlied},
	"snappy":  {snapped, framedOrSnapped},
}

// framedOrSnapped writes snappy's framing format, of which an empty text has nothing at all.
func framedOrSnapped(text string) string {
	if text == "" {
		return snapped(text)
	}
	return framed(text)
}

// code applies up to as many codings as are taken.
func (s *sent) code(t *rapid.T) {
	var names []string
	for range rapid.IntRange(0, maxCodings).Draw(t, "codings") {
		name := codingNames[rapid.IntRange(0, int(allCodings)-1).Draw(t, "coding")].name
		s.body = rapid.SampledFrom(coders[name]).Draw(t, "coder")(s.body)
		names = append(names, name)
	}
	if names != nil {
		s.header = append(s.header, "Content-Encoding: "+strings.Join(names, ", "))
	}
}

// do serves a request without a socket.
func do(t *rapid.T, stream *fakeStream, s *sent) (status int, doc document) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &core{gate: fakeGate{"s": stream}, budget: unlimited(), metrics: m, timeout: time.Minute}
	h := &head{}
	if no := h.parse([]byte(strings.Join(s.header, "\r\n") + "\r\n\r\n")); no != nil {
		t.Fatal(no.Problem)
	}
	a := c.serve(context.Background(), &request{method: []byte("POST"), target: []byte(events), fields: h.fields,
		length: int64(len(s.body)), body: strings.NewReader(s.body)})
	if err := json.Unmarshal(a.doc, &doc); err != nil {
		t.Fatalf("%v: %s", err, a.doc)
	}
	return a.status, doc
}

// Whatever the framing and the codings: what is stored is what was sent, byte for byte and in order.
func TestStoredIsWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSent(t)
		plain := s.body
		s.code(t)
		stream := &fakeStream{}
		status, doc := do(t, stream, &s)
		if status != 200 || doc.Accepted != len(s.events) {
			t.Fatalf("%d %+v\nsent %q as %q", status, doc, plain, s.header)
		}
		if got := stream.data(); !slices.Equal(got, s.events) {
			t.Fatalf("stored %q\nsent   %q", got, s.events)
		}
	})
}

// Whatever is in a body and whatever becomes of its events: the five counts of an answer add up to the events that came,
// each is in its own place, and what is not counted as accepted is not stored.
func TestCountsAddUp(t *testing.T) {
	line := rapid.SampledFrom([]string{"1", "2", `{"a":1}`, "{", "1 2", "\"\xff\"", strings.Repeat("[", 70), `"` + strings.Repeat("x", 100) + `"`})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 1, 150).Draw(t, "lines")
		verdicts := rapid.SliceOfN(rapid.IntRange(0, 4), len(lines), len(lines)).Draw(t, "verdicts")
		var want event.Counts
		stream := &fakeStream{settings: Settings{Limits: Limits{Event: 64}}, accept: func(_ context.Context, b *event.Batch) error {
			for i := range b.Events {
				if b.Events[i].Verdict != event.Keep {
					continue
				}
				if v := event.Verdict(verdicts[i]); v == event.Rejected {
					b.Reject(i, event.PluginRejected, "no")
				} else {
					b.Events[i].Verdict = v
				}
			}
			want = b.Counts()
			return nil
		}}
		s := sent{header: []string{ndjson}, body: strings.Join(lines, "\n")}
		status, doc := do(t, stream, &s)
		sum := doc.Accepted + doc.Filtered + doc.Rejected + doc.Duplicates + doc.Deadlettered
		bad := 0
		for _, l := range lines {
			if len(l) > 64 || !json.Valid([]byte(l)) || strings.Contains(l, "\xff") {
				bad++
			}
		}
		if sum != len(lines) || doc.Rejected < bad || len(doc.Errors) != min(doc.Rejected, event.MaxErrors) {
			t.Fatalf("%d: %+v of %d lines, %d bad", status, doc, len(lines), bad)
		}
		if n := len(stream.take()); n != doc.Accepted || want != (event.Counts{}) && want.Accepted != n {
			t.Fatalf("%d stored, %+v", n, doc)
		}
		if all := doc.Rejected == len(lines); all != (status >= 400) || status == 207 != (doc.Rejected > 0 && !all) {
			t.Fatalf("status %d of %+v", status, doc)
		}
		seen := map[int]bool{}
		for _, e := range doc.Errors {
			if seen[e.Index] || e.Index >= len(lines) {
				t.Fatalf("errors %+v", doc.Errors)
			}
			seen[e.Index] = true
		}
	})
}

// Whatever bytes come under whatever type: there is an answer, its counts add up, and what is stored was in the body.
func TestAnyBytesAreAnswered(t *testing.T) {
	types := []string{rawType, jsonType, ndjson, textType, "Content-Type: " + wire.TypePrefixed, ceType, ceBatchType}
	piece := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"`, `"a"`, "1", "\n", "\r", "\xff", "\x00", "\x05", `\`, `"id":"1"`, " "})
	rapid.Check(t, func(t *rapid.T) {
		s := sent{header: []string{rapid.SampledFrom(types).Draw(t, "type")}, body: strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "body"), "")}
		stream := &fakeStream{}
		status, doc := do(t, stream, &s)
		stored := stream.data()
		if status >= 400 && len(stored) > 0 || status < 300 && len(stored) != doc.Accepted || status >= 500 {
			t.Fatalf("%d %+v, stored %q", status, doc, stored)
		}
		rest := s.body
		for _, e := range stored {
			at := strings.Index(rest, e)
			if at < 0 {
				t.Fatalf("%q is stored and was not sent", e)
			}
			rest = rest[at+len(e):]
		}
	})
}
