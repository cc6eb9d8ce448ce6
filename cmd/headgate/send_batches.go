package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// batch is the body of one request and where its events come from.
type batch struct {
	body   []byte
	starts []int // of the events in body
	lines  []int // of the events in the file, from 1; nil when it has no lines
	first  int   // number of the first event in the file, from 1
	picked []int // numbers of all events in the file, where some of a batch were picked out of it

	prefixed bool // each event has its length in front
	array    bool // the events are the elements of a JSON array
	whole    bool // the file as it is, whatever events are in it
}

// event returns the data of event i, without line end or length.
func (b *batch) event(i int) []byte {
	end := len(b.body)
	if i+1 < len(b.starts) {
		end = b.starts[i+1]
	}
	data := b.body[b.starts[i]:end:end]
	switch {
	case b.prefixed:
		_, n := binary.Uvarint(data)
		return data[n:]
	case b.array:
		return data[:len(data)-1] // a comma or the bracket
	case b.lines != nil:
		return bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	}
	return data
}

// framed returns event i as it stands in a file of its kind: with its line end or its length.
func (b *batch) framed(i int) []byte {
	data := b.event(i)
	if b.prefixed {
		return append(binary.AppendUvarint(nil, uint64(len(data))), data...)
	}
	return append(data[:len(data):len(data)], '\n')
}

// pick returns a batch of the given events of b, in order.
func (b *batch) pick(events []int) *batch {
	if len(b.starts) == 1 {
		return b
	}
	p := &batch{first: b.first, prefixed: b.prefixed, array: b.array}
	for n, i := range events {
		switch {
		case b.array && n == 0:
			p.body = append(p.body, '[')
		case b.array:
			p.body = append(p.body, ',')
		}
		p.starts, p.picked = append(p.starts, len(p.body)), append(p.picked, b.number(i))
		if b.array {
			p.body = append(p.body, b.event(i)...)
		} else {
			p.body = append(p.body, b.framed(i)...)
		}
		if b.lines != nil {
			p.lines = append(p.lines, b.lines[i])
		}
	}
	if b.array {
		p.body = append(p.body, ']')
	}
	return p
}

// number returns which event of the file event i is, from 1.
func (b *batch) number(i int) int {
	if i < len(b.picked) {
		return b.picked[i]
	}
	return b.first + i
}

// batches cuts a file into requests; next ends with io.EOF. A batch that comes with another error holds what was read
// before it. No memory is reused: the HTTP client may still read a body whose request has been answered.
type batches interface{ next() (*batch, error) }

// ndjson is the media type of files that say nothing else.
const ndjson = "application/x-ndjson"

const (
	batchBytes = 4 << 20  // a request is closed when it has so many
	eventBytes = 64 << 20 // a longer line is no event
)

// cut chooses by media type: lines, length-prefixed events, CloudEvents, or the whole file as one body.
func cut(r io.Reader, mediaType string, events int) batches {
	c := cutter{r: bufio.NewReaderSize(r, 256<<10), events: events, batch: &batch{first: 1}}
	switch name, _, _ := strings.Cut(strings.ToLower(mediaType), ";"); strings.TrimSpace(name) {
	case ndjson, "application/ndjson", "application/jsonl", "application/jsonlines":
		return &byLine{cutter: c, blank: func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }}
	case "text/plain":
		return &byLine{cutter: c, blank: func(line []byte) bool { return len(bytes.TrimRight(line, "\r\n")) == 0 }}
	case "application/vnd.headgate.events":
		return &byLength{c}
	case "application/cloudevents+json":
		c.events = 1
		return &byValue{cutter: c}
	case "application/cloudevents-batch+json":
		return &byValue{cutter: c, array: true}
	}
	return &whole{c}
}

// cutter is what the ways to cut have in common.
type cutter struct {
	r      *bufio.Reader
	events int // most events of a batch
	batch  *batch
	ended  bool
}

func (c *cutter) begin() *batch {
	last := c.batch
	c.batch = &batch{first: last.first + len(last.starts), body: make([]byte, 0, cap(last.body))}
	return c.batch
}

func (c *cutter) full() bool {
	return len(c.batch.starts) >= c.events || len(c.batch.body) >= batchBytes
}

// byLine takes a line as an event. Blank lines are left out.
type byLine struct {
	cutter
	blank func(line []byte) bool
	line  int
}

func (c *byLine) next() (*batch, error) {
	b := c.begin()
	for !c.ended && !c.full() {
		c.line++
		start := len(b.body)
		if err := c.readLine(); err != nil {
			return b, fmt.Errorf("line %d: %w", c.line, err)
		}
		if c.blank(b.body[start:]) {
			b.body = b.body[:start]
			continue
		}
		b.starts, b.lines = append(b.starts, start), append(b.lines, c.line)
	}
	if len(b.starts) == 0 {
		return nil, io.EOF
	}
	return b, nil
}

// readLine appends one line to the body, ended by \n also when the file's last line is not.
func (c *byLine) readLine() error {
	b, start := c.batch, len(c.batch.body)
	for {
		piece, err := c.r.ReadSlice('\n')
		b.body = append(b.body, piece...)
		switch {
		case err == nil:
			return nil
		case err == io.EOF:
			c.ended = true
			if len(b.body) > start {
				b.body = append(b.body, '\n')
			}
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case len(b.body)-start > eventBytes:
			return fmt.Errorf("longer than %d MiB", eventBytes>>20)
		}
	}
}

// byLength takes events with their length in front, as an unsigned varint.
type byLength struct{ cutter }

func (c *byLength) next() (*batch, error) {
	b := c.begin()
	b.prefixed = true
	for !c.full() {
		size, err := binary.ReadUvarint(c.r)
		if err == io.EOF {
			break
		}
		if err == nil && size > eventBytes {
			err = fmt.Errorf("longer than %d MiB; is this a file of length-prefixed events?", eventBytes>>20)
		}
		if err != nil {
			return b, fmt.Errorf("event %d: %w", b.first+len(b.starts), err)
		}
		start := len(b.body)
		b.body = binary.AppendUvarint(b.body, size)
		at := len(b.body)
		b.body = append(b.body, make([]byte, size)...)
		if _, err := io.ReadFull(c.r, b.body[at:]); err != nil {
			b.body = b.body[:start]
			return b, fmt.Errorf("event %d: the file ends in the middle of it", b.first+len(b.starts))
		}
		b.starts = append(b.starts, start)
	}
	if len(b.starts) == 0 {
		return nil, io.EOF
	}
	return b, nil
}

// whole takes the file as one body.
type whole struct{ cutter }

func (c *whole) next() (*batch, error) {
	b := c.begin()
	if c.ended {
		return nil, io.EOF
	}
	c.ended = true
	body, err := io.ReadAll(io.LimitReader(c.r, eventBytes+1))
	if err == nil && len(body) > eventBytes {
		err = fmt.Errorf("longer than %d MiB", eventBytes>>20)
	}
	if err != nil {
		return b, err
	}
	b.body, b.starts, b.whole = body, append(b.starts, 0), true
	return b, nil
}
