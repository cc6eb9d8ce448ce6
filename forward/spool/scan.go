package spool

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
)

// scanner reads the headers of a segment in order, without the payloads, and finds its way behind damage.
type scanner struct {
	r     io.ReaderAt
	size  int64
	blank int64 // from here on the file is zeros, which may have been written ahead of records
	salt  uint32

	off    int64  // of what comes next
	window []byte // bytes of the file from at on
	at     int64
	chunk  []byte
	ask    int // bytes to read next
}

// What is read at a time: little of what is behind the header of large frames, and more and more of small ones, of which a window
// holds several.
const (
	scanLeast = 4 << 10
	scanMost  = 256 << 10
)

// found is a record, or a range of bytes that is none.
type found struct {
	header
	off, end int64
	damaged  bool
	tail     bool // damaged, and nothing follows: also what a crash in the middle of a write leaves
}

func newScanner(r io.ReaderAt, size int64, salt uint32) (*scanner, error) {
	blank, err := blankFrom(r, size)
	return &scanner{r: r, size: size, blank: blank, salt: salt, ask: scanLeast}, err
}

// blankFrom returns from where on there is nothing but zeros to the end of the file.
func blankFrom(r io.ReaderAt, size int64) (int64, error) {
	var last [1]byte
	raw := last[:]
	for size > 0 {
		part := raw[:min(int64(len(raw)), size)]
		if n, err := r.ReadAt(part, size-int64(len(part))); n < len(part) {
			return 0, shorter(err)
		}
		for i := len(part); i > 0; i-- {
			if part[i-1] != 0 {
				return size - int64(len(part)-i), nil
			}
		}
		if size -= int64(len(part)); len(raw) == 1 {
			raw = make([]byte, scanMost)
		}
	}
	return 0, nil
}

// next returns what comes next; io.EOF at the end, or an error of the file.
func (s *scanner) next() (found, error) {
	if s.off >= s.blank {
		return found{}, io.EOF
	}
	begin := s.off
	h, ok, err := s.header(begin)
	if err != nil {
		return found{}, err
	}
	if ok {
		s.off = begin + h.recordLength
		return found{header: h, off: begin, end: s.off}, nil
	}
	end, err := s.resync(begin + 1)
	if err != nil {
		return found{}, err
	}
	s.off = end
	return found{off: begin, end: end, damaged: true, tail: end == s.blank}, nil
}

// header reads the header at off. A record that does not end within the file is none.
func (s *scanner) header(off int64) (h header, ok bool, err error) {
	raw, err := s.view(off, headerSize)
	if err != nil || len(raw) < headerSize {
		return h, false, err
	}
	h, ok = parseHeader(raw, s.salt)
	return h, ok && off+h.recordLength <= s.size, nil
}

// resync returns where the next record begins from off on, or where nothing but zeros follows.
func (s *scanner) resync(off int64) (int64, error) {
	for off < s.blank {
		raw, err := s.view(off, headerSize)
		if err != nil {
			return 0, err
		}
		i := bytes.Index(raw, marker[:])
		if i < 0 {
			off += int64(max(len(raw)-len(marker)+1, 1))
			continue
		}
		off += int64(i)
		if _, ok, err := s.header(off); ok || err != nil {
			return off, err
		}
		off++
	}
	return s.blank, nil
}

// view returns the bytes of the file from off on, at least n unless it ends before.
func (s *scanner) view(off int64, n int) ([]byte, error) {
	if have := s.at + int64(len(s.window)) - off; off >= s.at && have > 0 && (have >= int64(n) || s.at+int64(len(s.window)) == s.size) {
		return s.window[off-s.at:], nil
	}
	if off <= s.at+int64(len(s.window)) {
		s.ask = min(4*s.ask, scanMost)
	} else {
		s.ask = scanLeast
	}
	want := min(int64(max(s.ask, n)), s.size-off)
	if want > int64(len(s.chunk)) {
		s.chunk = make([]byte, want)
	}
	got, err := s.r.ReadAt(s.chunk[:want], off)
	if int64(got) < want {
		return nil, shorter(err)
	}
	s.at, s.window = off, s.chunk[:want]
	return s.window, nil
}

// shorter is the error of a read that ended before the file should.
func shorter(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// whole tells whether the payload of a record is what was written. Small ones are taken from the window.
func (s *scanner) whole(r *found, f *Frame) (bool, error) {
	if r.recordLength > scanMost {
		_, err := readRecord(s.r, r.off, s.salt, f)
		if errors.Is(err, errDamaged) {
			return false, nil
		}
		return err == nil, err
	}
	raw, err := s.view(r.off, int(r.recordLength))
	if err != nil {
		return false, err
	}
	return crc32.Checksum(raw[headerSize:r.recordLength], castagnoli) == r.sum, nil
}

// readRecord reads a whole record into f, whose Payload is used again where it has room, and checks it.
func readRecord(r io.ReaderAt, off int64, salt uint32, f *Frame) (h header, err error) {
	var raw [headerSize]byte
	if n, err := r.ReadAt(raw[:], off); n < headerSize {
		return h, orDamaged(err)
	}
	h, ok := parseHeader(raw[:], salt)
	if !ok || h.kind != kindFrame {
		return h, errDamaged
	}
	payload := f.Payload[:0]
	if cap(payload) < int(h.size) {
		payload = make([]byte, 0, h.size)
	}
	payload = payload[:h.size]
	if n, err := r.ReadAt(payload, off+headerSize); n < len(payload) {
		return h, orDamaged(err)
	}
	if crc32.Checksum(payload, castagnoli) != h.sum {
		return h, errDamaged
	}
	*f = h.Frame
	f.Payload = payload
	return h, nil
}

// orDamaged tells a file that is too short from one that can't be read.
func orDamaged(err error) error {
	if err == nil || err == io.EOF {
		return errDamaged
	}
	return err
}
