package gateway

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/requestid"
)

// Attributes that a replayed event has besides those that it came with: the letter that it was, and how often it was replayed.
// No CloudEvents attribute has a dash in its name.
const (
	replayAttr = "headgate-replay"
	triesAttr  = "headgate-tries"
)

// Attributes of a letter that are not the event's. Those of a replay take the place of the two above.
const (
	replayOfAttr   = "replay_of"
	letterTries    = "tries"
	requestKeyAttr = "request_key" // Headgate-Key, or the header of the stream's key
	producerAttr   = "producer"
)

// Letters are handed over in batches of at most so many events and, but for a single one, bytes.
const (
	batchLetters = 256
	batchBytes   = 512 << 10
)

// replayBatch is consecutive letters that can be one request: of one producer, with one key of the request, of one syntax.
type replayBatch struct {
	letters []admin.Letter
	bytes   int

	producer, requestKey string
	hasKey               bool
	syntax               event.Syntax
	fields               [][event.MaxFields]event.Span
}

// letterReader finds in letters what their events need to be taken again.
type letterReader struct{ scanner *jsonscan.Scanner }

func newLetterReader(def *definition) letterReader {
	return letterReader{jsonscan.New(def.settings.Limits.Depth, def.settings.Watch)}
}

// add appends a letter, unless it must be in another batch.
func (r *letterReader) add(b *replayBatch, l *admin.Letter) bool {
	var of replayBatch
	for _, a := range l.Attrs {
		switch string(a.Name) {
		case producerAttr:
			of.producer = string(a.Value)
		case requestKeyAttr:
			of.requestKey, of.hasKey = string(a.Value), true
		}
	}
	var fields [event.MaxFields]event.Span
	if r.scanner.Check(l.Data).Code == "" {
		of.syntax, fields = event.JSON, r.scanner.EventFields()
	}
	if len(b.letters) == 0 {
		b.producer, b.requestKey, b.hasKey, b.syntax = of.producer, of.requestKey, of.hasKey, of.syntax
	} else if b.producer != of.producer || b.requestKey != of.requestKey || b.hasKey != of.hasKey || b.syntax != of.syntax ||
		len(b.letters) == batchLetters || b.bytes+len(l.Data) > batchBytes {
		return false
	}
	b.letters, b.fields, b.bytes = append(b.letters, *l), append(b.fields, fields), b.bytes+len(l.Data)
	return true
}

// batch makes the request.
func (b *replayBatch) batch(stream string, ack event.Level, now time.Time) *event.Batch {
	out := &event.Batch{
		Stream: stream, ID: requestid.New(now), Syntax: b.syntax, Producer: []byte(b.producer), Arrived: now.UnixNano(), Ack: ack,
		HasKey: b.hasKey, Replay: true, Events: make([]event.Event, len(b.letters)),
	}
	if b.hasKey {
		out.Key = []byte(b.requestKey)
	}
	for i := range b.letters {
		l := &b.letters[i]
		out.Events[i] = event.Event{Data: l.Data, Key: l.Key, HasKey: l.HasKey, ID: l.ID, Time: l.Time, Fields: b.fields[i], Attrs: replayed(l)}
	}
	return out
}

// replayed returns the attributes of the event that a letter is, with those of the replay.
func replayed(l *admin.Letter) (attrs []event.Attr) {
	tries := 0
	for _, a := range l.Attrs {
		if name, its := bytes.CutPrefix(a.Name, []byte(prefix)); its {
			attrs = append(attrs, event.Attr{Name: name, Value: a.Value})
		} else if string(a.Name) == letterTries {
			tries, _ = strconv.Atoi(string(a.Value))
		}
	}
	return append(attrs, event.Attr{Name: []byte(replayAttr), Value: []byte(l.Name())},
		event.Attr{Name: []byte(triesAttr), Value: strconv.AppendInt(nil, int64(tries)+1, 10)})
}

// ownName is what a letter calls an attribute of its event: one of a replay is the letter's, all others are the event's.
func ownName(name []byte) (own string, ok bool) {
	switch string(name) {
	case replayAttr:
		return replayOfAttr, true
	case triesAttr:
		return letterTries, true
	}
	return "", false
}

// parseLetterName splits the name of a letter; ok is false when it is none.
func parseLetterName(name []byte) (gateway string, number uint64, ok bool) {
	gateway, digits, ok := strings.Cut(string(name), ".")
	if ok {
		var err error
		number, err = strconv.ParseUint(digits, 10, 64)
		ok = err == nil
	}
	return gateway, number, ok
}
