package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

const threshold = 500

// oracle is what the accesslog example must make of an event, by encoding/json.
func oracle(t *testing.T, text string) string {
	t.Helper()
	members := map[string][]json.RawMessage{}
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		members[name.(string)] = append(members[name.(string)], value)
	}
	if v := members["response"]; len(v) == 1 {
		if n, err := strconv.ParseInt(string(v[0]), 10, 64); err == nil && n >= threshold {
			return "filtered\n"
		}
	}
	var ip string
	if v := members["remote_ip"]; len(v) == 1 && v[0][0] == '"' && json.Unmarshal(v[0], &ip) == nil {
		return "accepted key=" + ip + "\n"
	}
	return "accepted\n"
}

// writer makes up JSON that is hard to look through.
type writer struct {
	*rand.Rand
	strings.Builder
}

func (w *writer) pick(from ...string) string { return from[w.IntN(len(from))] }

func (w *writer) space() {
	for w.IntN(8) == 0 {
		w.WriteString(w.pick(" ", "\n", "\t", "\r", strings.Repeat(" ", w.IntN(80))))
	}
}

func (w *writer) text() {
	w.WriteByte('"')
	for w.IntN(5) > 0 {
		w.WriteString(w.pick(`\"`, `\\`, `\\`, `\n`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud800`, `\udc00x`, `\u0022`, `\u005c`, "é", "{", "}", "[", "]", ":", ",",
			"remote_ip", strings.Repeat("x", w.IntN(70)), strings.Repeat(`\\`, w.IntN(40))))
	}
	w.WriteByte('"')
}

func (w *writer) value(depth int) {
	switch w.IntN(7 + depth) {
	case 0:
		w.WriteString(w.pick("499", "500", "-1", "0", "-0", "1e3", "500.0", "9223372036854775807", "9223372036854775808", "null", "true", "false"))
	case 1:
		w.WriteString(strconv.Itoa(w.IntN(1000)))
	case 2:
		w.object(depth+3, w.IntN(4))
	case 3:
		w.WriteByte('[')
		for i := range w.IntN(4) {
			if i > 0 {
				w.WriteByte(',')
			}
			w.space()
			w.value(depth + 3)
			w.space()
		}
		w.WriteByte(']')
	default:
		w.text()
	}
}

func (w *writer) object(depth, members int) {
	w.WriteByte('{')
	for i := range members {
		if i > 0 {
			w.WriteByte(',')
		}
		w.space()
		if w.IntN(4) == 0 {
			w.text()
		} else {
			w.WriteString(w.pick(`"remote_ip"`, `"remote_ip"`, `"response"`, `"remote\u005fip"`, `"\u0072esponse"`, `"referrer"`, `"remote_i"`, `"remote_ip "`,
				`"time"`, `"agent"`, `""`, `"remote\\u005fip"`, `"bytes"`, `"request"`))
		}
		w.space()
		w.WriteByte(':')
		w.space()
		w.value(depth)
		w.space()
	}
	w.space()
	w.WriteByte('}')
}

func madeUp(r *rand.Rand) string {
	w := writer{Rand: r}
	w.space()
	w.object(0, w.IntN(9))
	w.space()
	return w.String()
}

// The example in every language, and those in C and Rust without vector instructions, agree with encoding/json.
func TestGuestsAgreeWithEncodingJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var events, want []string
	hits := map[string]int{}
	for range 5000 {
		text := madeUp(r)
		outcome := oracle(t, text)
		kind, _, _ := strings.Cut(outcome, "=")
		hits[kind]++
		events, want = append(events, text), append(want, outcome)
	}
	t.Log(hits)
	all := guests(t)
	for name, wasm := range all {
		t.Run(name, func(t *testing.T) { agree(t, wasm, events, want) })
	}
	t.Run("C without vectors", func(t *testing.T) {
		agree(t, compileC(t, filepath.Join(exampleInCFolder, "accesslog.c"), "-mno-simd128"), events, want)
	})
	t.Run("Rust without vectors", func(t *testing.T) {
		agree(t, compileRust(t, filepath.Join(exampleInRust, "lib.rs"), "EXTRA=-C target-feature=-simd128"), events, want)
	})
}

// Metered guests do what they do unmetered, whatever they are given.
func TestMeteredGuestsDoTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var events []string
	for i := range 3000 {
		if i%2 == 0 {
			events = append(events, madeUp(r))
		} else {
			events = append(events, string(damaged(r)))
		}
	}
	for name, wasm := range guests(t) {
		var got [2]string
		for i := range got {
			h := hostOf(t, Config{Instances: 1})
			h.unmetered = i == 0
			c := chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
			b := batchOf(events...)
			process(t, c, b)
			got[i] = outcomes(b)
		}
		if got[0] != got[1] {
			t.Errorf("%s: not the same", name)
		}
	}
}

func agree(t *testing.T, wasm []byte, events, want []string) {
	h := hostOf(t, Config{Instances: 1})
	compare(t, chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, wasm), Config: fmt.Appendf(nil, `{"drop_status_from":%d}`, threshold)}), events, want)
}

// On a stream without syntax anything may come: then a key is some part of the event, and nothing breaks.
func TestGuestsOnAnythingElse(t *testing.T) {
	for name, wasm := range guests(t) {
		t.Run(name, func(t *testing.T) {
			h := hostOf(t, Config{Instances: 1})
			c := chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
			r := rand.New(rand.NewPCG(3, 4))
			for range 100 {
				b := &event.Batch{Stream: "web"}
				for range 200 {
					b.Events = append(b.Events, event.Event{Data: damaged(r)})
				}
				process(t, c, b)
				if len(b.Errors) > 0 {
					t.Fatalf("%s: %v", b.Events[b.Errors[0].Index].Data, b.Errors[0])
				}
			}
		})
	}
}

// damaged is JSON with some bytes changed and the end missing.
func damaged(r *rand.Rand) []byte {
	p := []byte(madeUp(r))
	for range r.IntN(4) {
		p[r.IntN(len(p))] = `"\{}[]:, x`[r.IntN(10)]
	}
	return bytes.Clone(p[:r.IntN(len(p)+1)])
}
