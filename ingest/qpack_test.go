package ingest

import (
	"crypto/tls"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// frame3 is a frame of HTTP/3.
func frame3(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

// A byte or two of QPACK stand for a field of a hundred (CVE-2025-64702, and for trailers CVE-2026-40898): a header is bounded as it
// is decoded.
func TestF59HeadersThatGrowInQPACK(t *testing.T) {
	_, at := serveQUIC(t, Config{}, &fakeStream{})
	conn, err := quic.DialAddr(t.Context(), at, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocolH3}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseWithError(0, "")
	control, err := conn.OpenUniStream()
	if err != nil {
		t.Fatal(err)
	}
	control.Write(append([]byte{0}, frame3(4, nil)...))
	// RFC 9204: no dynamic table; then POST, https, an authority and a path (static table 20, 23, 0, and 1 with a value).
	request := []byte{0, 0, 0xc0 | 20, 0xc0 | 23, 0x50, 1, 'x', 0x51, byte(len(events))}
	request = append(request, events...)
	request = append(request, 0x5f, 0x1d, 20) // content-type (44)
	request = append(request, "application/x-ndjson"...)
	bomb := func(n int) (fields []byte) { // content-security-policy (85) of 72 bytes
		for range n {
			fields = append(fields, 0xff, 85-63)
		}
		return fields
	}
	ask := func(frames ...[]byte) error {
		str, err := conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			str.Write(f)
		}
		str.Close()
		answer, err := io.ReadAll(str)
		if err == nil && len(answer) == 0 {
			return errors.New("no answer")
		}
		return err
	}
	if err := ask(frame3(1, request), frame3(0, []byte("1\n"))); err != nil {
		t.Fatalf("without a bomb: %v", err)
	}
	const times, size = 40, 20_000 // which would be 3 MiB
	for name, frames := range map[string][][]byte{
		"header":  {frame3(1, append(append([]byte(nil), request...), bomb(size)...))},
		"trailer": {frame3(1, request), frame3(0, []byte("1\n")), frame3(1, append([]byte{0, 0}, bomb(size)...))},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			ask(frames...) // 431, or the stream is reset
		}
		runtime.ReadMemStats(&after)
		if each := int64(after.TotalAlloc-before.TotalAlloc) / times; each > 1<<20 {
			t.Errorf("%s: %d bytes are allocated for one of %d", name, each, 2*size)
		}
	}
	if err := ask(frame3(1, request), frame3(0, []byte("1\n"))); err != nil {
		t.Errorf("behind the bombs: %v", err)
	}
}
