package wire

import (
	"bytes"
	"errors"
	"testing"
)

var framings = []Framing{NDJSON, Prefixed}

// walk returns the events of src.
func walk(src []byte, f Framing) (events [][]byte, err error) {
	for len(src) > 0 {
		data, rest, err := NextEvent(src, f)
		if err != nil {
			return events, err
		}
		events, src = append(events, data), rest
	}
	return events, nil
}

func TestEventsComeBackByteForByte(t *testing.T) {
	want := [][]byte{[]byte(`{"a":1}`), {}, []byte("\xff\x00\r"), bytes.Repeat([]byte("x"), 300), []byte(" ")}
	for _, f := range framings {
		var src []byte
		for _, e := range want {
			src = AppendEvent(src, e, f)
		}
		got, err := walk(src, f)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %d events, %v", f.ContentType(), len(got), err)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%s: event %d is %q", f.ContentType(), i, got[i])
			}
		}
	}
}

func TestNextEventTruncatedAtEachByte(t *testing.T) {
	for _, f := range framings {
		one := AppendEvent(nil, bytes.Repeat([]byte("x"), 200), f)
		for n := range one {
			if _, _, err := NextEvent(one[:n], f); !errors.Is(err, ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", f.ContentType(), n, len(one), err)
			}
		}
	}
}

func TestNextEventRefusesLengthsOver64Bits(t *testing.T) {
	src := append(bytes.Repeat([]byte{0xff}, 10), 1)
	if _, _, err := NextEvent(src, Prefixed); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	src = append(bytes.Repeat([]byte{0xff}, 9), 1) // 2^64 - 1
	if _, _, err := NextEvent(src, Prefixed); !errors.Is(err, ErrTruncated) {
		t.Error(err)
	}
}

func TestNextEventKeepsAppendOut(t *testing.T) {
	for _, f := range framings {
		src := AppendEvent(AppendEvent(nil, []byte("one"), f), []byte("two"), f)
		data, rest, _ := NextEvent(src, f)
		_ = append(data, "overwritten"...)
		if second, _, err := NextEvent(rest, f); string(second) != "two" {
			t.Errorf("%s: %q, %v", f.ContentType(), second, err)
		}
	}
}

func TestFramingOf(t *testing.T) {
	for _, f := range framings {
		if got, ok := FramingOf(f.ContentType()); got != f || !ok {
			t.Error(f)
		}
	}
	if f, ok := FramingOf("Application/X-NDJSON ; charset=utf-8"); f != NDJSON || !ok {
		t.Error("case and parameters matter")
	}
	for _, name := range []string{"", "application/json", "application/x-ndjson2", ";"} {
		if _, ok := FramingOf(name); ok {
			t.Errorf("%q is a framing", name)
		}
	}
}

func FuzzNextEvent(f *testing.F) {
	f.Add([]byte("a\n\nb"), true)
	f.Add([]byte("\x01a\x00\x80\x00"), false)
	f.Fuzz(func(t *testing.T, src []byte, lines bool) {
		framing := Prefixed
		if lines {
			framing = NDJSON
		}
		events, err := walk(src, framing)
		var again []byte
		for _, e := range events {
			again = AppendEvent(again, e, framing)
		}
		if lines && err == nil && !bytes.Equal(again, src) {
			t.Fatalf("%q became %q", src, again)
		}
		if len(again) > len(src) { // a varint may be longer than needed, so it may be less
			t.Fatalf("%d bytes out of %d", len(again), len(src))
		}
		if got, err := walk(again, framing); err != nil || len(got) != len(events) {
			t.Fatalf("%d events, then %d, %v", len(events), len(got), err)
		}
	})
}
