package session

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// open appends a type and returns where the payload begins, whose length shut puts in front of it.
func open(dst []byte, t Type) ([]byte, int) {
	dst = binary.AppendUvarint(dst, uint64(t))
	return dst, len(dst)
}

func shut(dst []byte, at int) []byte {
	var room [binary.MaxVarintLen64]byte
	return slices.Insert(dst, at, binary.AppendUvarint(room[:0], uint64(len(dst)-at))...)
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendAll(dst []byte, all ...uint64) []byte {
	for _, v := range all {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// parser reads a payload from its start. After a failure it returns zeros.
type parser struct {
	b      []byte
	failed bool
	short  bool // it failed because the payload ends too soon
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || p.failed {
		p.short = p.short || n == 0 && !p.failed
		p.failed = true
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) text() string {
	n := p.uvarint()
	if n > uint64(len(p.b)) {
		p.short = p.short || !p.failed
		p.failed = true
	}
	if p.failed {
		return ""
	}
	text := string(p.b[:n])
	p.b = p.b[n:]
	return text
}

func (p *parser) bool() bool {
	v := p.uvarint()
	p.failed = p.failed || v > 1
	return v == 1
}

func (p *parser) fault() error {
	switch {
	case p.short:
		return fmt.Errorf("payload: %w", ErrTruncated)
	case p.failed:
		return fmt.Errorf("payload: %w", ErrMalformed)
	}
	return nil
}

// end returns what went wrong; bytes that are left are wrong, too.
func (p *parser) end() error {
	p.failed = p.failed || len(p.b) > 0
	return p.fault()
}
