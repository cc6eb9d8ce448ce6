package spool

import (
	"bytes"
	"hash/crc32"
	"io"
)

// scanner reads the headers of a segment in order, without the payloads, and finds its way behind damage.
type scanner struct {
	r    io.ReaderAt
	size int64
	salt uint32

	off    int64  // of what comes next
	window []byte // bytes of the file from at on
	at     int64
	chunk  []byte
}

// scanChunk is what is read at a time: many headers of small frames, little of what is behind the header of large ones.
const scanChunk = 16 << 10

// found is a record, or a range of bytes that is none.
type found struct {
	header
	off, end int64
	damaged  bool
	tail     bool // damaged, and nothing follows: also what a crash in the middle of a write leaves
}

func newScanner(r io.ReaderAt, size int64, salt uint32) *scanner {
	return &scanner{r: r, size: size, salt: salt, chunk: make([]byte, scanChunk)}
}

// next returns what comes next; io.EOF at the end, or an error of the file.
func (s *scanner) next() (found, error) {
	if s.off >= s.size {
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
	return found{off: begin, end: end, damaged: true, tail: end == s.size}, nil
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

// resync returns where the next record begins from off on, or the end of the file.
func (s *scanner) resync(off int64) (int64, error) {
	for off < s.size {
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
	return s.size, nil
}

// view returns the bytes of the file from off on, at least n unless it ends before.
func (s *scanner) view(off int64, n int) ([]byte, error) {
	if have := s.at + int64(len(s.window)) - off; off >= s.at && have > 0 && (have >= int64(n) || s.at+int64(len(s.window)) == s.size) {
		return s.window[off-s.at:], nil
	}
	want := min(int64(len(s.chunk)), s.size-off)
	got, err := s.r.ReadAt(s.chunk[:want], off)
	if int64(got) < want {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	s.at, s.window = off, s.chunk[:want]
	return s.window, nil
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
