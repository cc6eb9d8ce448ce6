package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// byValue takes the values of a JSON file as events: the elements of its one array, or the values one after the other. A
// request is one of them, or an array of several.
type byValue struct {
	cutter
	array  bool          // requests are arrays
	values *json.Decoder // nil until the file's first byte was looked at
	inside bool          // the file's array is being read
}

func (c *byValue) next() (*batch, error) {
	b := c.begin()
	b.array = c.array
	for !c.ended && !c.full() {
		value, err := c.read()
		if err == io.EOF {
			c.ended = true
			break
		}
		if err != nil {
			c.close()
			return b, fmt.Errorf("event %d: %w", b.first+len(b.starts), err)
		}
		switch {
		case c.array && len(b.starts) == 0:
			b.body = append(b.body, '[')
		case c.array:
			b.body = append(b.body, ',')
		}
		b.starts = append(b.starts, len(b.body))
		b.body = append(b.body, value...)
	}
	if len(b.starts) == 0 {
		return nil, io.EOF
	}
	c.close()
	return b, nil
}

// close ends the array of a request.
func (c *byValue) close() {
	if c.array && len(c.batch.starts) > 0 {
		c.batch.body = append(c.batch.body, ']')
	}
}

// read reads the next value, byte for byte. The error is io.EOF only where the file may end.
func (c *byValue) read() (value json.RawMessage, err error) {
	if c.values == nil {
		if err := c.open(); err != nil {
			return nil, err
		}
	}
	if c.inside && !c.values.More() {
		if _, err := c.values.Token(); err != nil { // the bracket
			return nil, cutOff(err)
		}
		if _, err := c.values.Token(); err != io.EOF {
			return nil, errors.New("something follows the array")
		}
		return nil, io.EOF
	}
	if err = c.values.Decode(&value); c.inside {
		err = cutOff(err)
	}
	return value, err
}

// open looks whether the file is an array.
func (c *byValue) open() error {
	for {
		first, err := c.r.ReadByte()
		if err != nil {
			return err
		}
		if first == ' ' || first == '\t' || first == '\r' || first == '\n' {
			continue
		}
		if err := c.r.UnreadByte(); err != nil {
			return err
		}
		c.values, c.inside = json.NewDecoder(c.r), first == '['
		if c.inside {
			_, err = c.values.Token()
		}
		return err
	}
}

func cutOff(err error) error {
	if err == io.EOF {
		return errors.New("the file ends inside the array")
	}
	return err
}
