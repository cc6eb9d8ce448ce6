package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func frames() map[Type]Frame {
	return map[Type]Frame{
		TypeHello: &Hello{Version: Version, Stream: "web", Session: "s1", Token: "secret", Source: "me", Level: Delivered, Acked: 300,
			Fields: []Field{{"headgate-key", "k"}, {"x-tenant", ""}}},
		TypeWelcome: &Welcome{Session: "s1", Settled: 1 << 40, Credit: 1 << 20, Level: Durable, MostFrame: 16 << 20, MostEvent: 1 << 20, MostCount: 100_000, Idle: 1000},
		TypeAck:     &Ack{Durable, 129}, TypeResult: &Result{1, 200, Durable, 190, 5, 3, 1, 1},
		TypeReject: &Reject{7, true, "key_rate", "wait"}, TypeCredit: &Credit{1 << 20}, TypeSlowDown: &SlowDown{500, "spool_full", "later"},
		TypeGoAway: &GoAway{77}, TypeError: &Error{false, "unauthorized", "no token"}, TypeFin: &Fin{},
	}
}

// empty returns a frame of the type of f.
func empty(f Frame) Frame { return reflect.New(reflect.TypeOf(f).Elem()).Interface().(Frame) }

func TestFramesComeBackAsTheyWere(t *testing.T) {
	for want, f := range frames() {
		r := bufio.NewReader(bytes.NewReader(f.Append([]byte(nil))))
		typ, length, err := ReadHead(r)
		if err != nil || typ != want {
			t.Fatalf("%T: type %d, %v", f, typ, err)
		}
		payload, err := ReadControl(r, length, nil)
		if err != nil {
			t.Fatalf("%T: %v", f, err)
		}
		got := empty(f)
		if err := got.Parse(payload); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v came back as %+v, %v", f, got, err)
		}
		if _, _, err := ReadHead(r); err != io.EOF {
			t.Errorf("%T: bytes are left: %v", f, err)
		}
	}
}

// A frame that is cut off anywhere is no frame, and what is read of it is no end of the stream.
func TestTruncationAtEachByte(t *testing.T) {
	for _, f := range frames() {
		whole := f.Append(nil)
		for n := 1; n < len(whole); n++ {
			r := bufio.NewReader(bytes.NewReader(whole[:n]))
			_, length, err := ReadHead(r)
			if err == nil {
				_, err = ReadControl(r, length, nil)
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%T cut off at %d: %v", f, n, err)
			}
		}
		_, length, _ := ReadHead(bufio.NewReader(bytes.NewReader(whole)))
		payload := whole[len(whole)-int(length):]
		for n := range payload {
			if err := empty(f).Parse(payload[:n]); !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrMalformed) {
				t.Errorf("payload of %T cut off at %d: %v", f, n, err)
			}
		}
		if err := empty(f).Parse(append(bytes.Clone(payload), 0)); !errors.Is(err, ErrMalformed) {
			t.Errorf("payload of %T with a byte too many: %v", f, err)
		}
	}
}

func TestEventsHead(t *testing.T) {
	want := EventsHead{First: 1000, Count: 3, Framing: JSON, Coding: Zstd}
	whole := append(AppendEventsHead(nil, want, 5), "12345"...)
	r := bufio.NewReader(bytes.NewReader(whole))
	typ, length, err := ReadHead(r)
	if err != nil || typ != TypeEvents {
		t.Fatal(typ, err)
	}
	got, left, err := ReadEventsHead(r, length)
	if err != nil || got != want || left != 5 {
		t.Errorf("%+v %d %v", got, left, err)
	}
	for n := 1; n < len(whole)-5; n++ {
		r := bufio.NewReader(bytes.NewReader(whole[:n]))
		_, length, err := ReadHead(r)
		if err == nil {
			_, _, err = ReadEventsHead(r, length)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut off at %d: %v", n, err)
		}
	}
	for _, bad := range [][]byte{{0, 1, 0, 0}, {1, 1, 0}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0, 0}, bytes.Repeat([]byte{0xff}, 20)} {
		if _, _, err := ReadEventsHead(bufio.NewReader(bytes.NewReader(bad)), uint64(len(bad))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// An announced length is not believed: memory is taken as bytes come.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	if _, err := ReadControl(bytes.NewReader(nil), MostControl+1, nil); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	got, err := ReadControl(bytes.NewReader([]byte("abc")), MostControl, nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > 4<<10 {
		t.Errorf("%d bytes for 3, %v", cap(got), err)
	}
}

func TestHelloOfAnotherVersion(t *testing.T) {
	var h Hello
	if err := h.Parse([]byte{2, 99, 99}); err != nil || h.Version != 2 {
		t.Error(h, err)
	}
}

func FuzzFrames(f *testing.F) {
	for typ, frame := range frames() {
		whole := frame.Append(nil)
		_, length, _ := ReadHead(bufio.NewReader(bytes.NewReader(whole)))
		f.Add(uint8(typ), whole[len(whole)-int(length):])
	}
	f.Fuzz(func(t *testing.T, typ uint8, payload []byte) {
		one := frames()[Type(typ)]
		if one == nil {
			return
		}
		got := empty(one)
		if got.Parse(payload) != nil {
			return
		}
		again := empty(one)
		whole := got.Append(nil)
		_, length, err := ReadHead(bufio.NewReader(bytes.NewReader(whole)))
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Parse(whole[len(whole)-int(length):]); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%+v came back as %+v, %v", got, again, err)
		}
	})
}

func FuzzEventsHead(f *testing.F) {
	f.Add(AppendEventsHead(nil, EventsHead{First: 1, Count: 2}, 3))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		typ, length, err := ReadHead(r)
		if err != nil || typ != TypeEvents || length > 1<<20 {
			return
		}
		h, left, err := ReadEventsHead(r, length)
		if err != nil {
			return
		}
		again := AppendEventsHead(nil, h, int(left))
		r = bufio.NewReader(bytes.NewReader(again))
		_, length, _ = ReadHead(r)
		if h2, left2, err := ReadEventsHead(r, length); err != nil || h2 != h || left2 != left {
			t.Errorf("%+v came back as %+v, %v", h, h2, err)
		}
	})
}
