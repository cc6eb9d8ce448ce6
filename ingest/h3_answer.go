package ingest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// reply3 composes an answer over HTTP/3: it goes out in one write, and so mostly in one packet. It is used again.
type reply3 struct {
	encoder *qpack.Encoder // into fields
	fields  bytes.Buffer
	text    []byte
}

var replies3 = sync.Pool{New: func() any {
	r := new(reply3)
	r.encoder = qpack.NewEncoder(&r.fields)
	return r
}}

// Types of HTTP/3's frames (RFC 9114 section 7.2).
const (
	frameData    = 0
	frameHeaders = 1
)

// field adds one to the header. What is written into is memory: there is no error.
func (r *reply3) field(name, value string) {
	r.encoder.WriteField(qpack.HeaderField{Name: name, Value: value})
}

// compose returns the frames of an answer. A document that is too large to be copied is not in them, though its length is.
func (r *reply3) compose(h *h3, a *answer, origins []string, bare bool) []byte {
	r.fields.Reset()
	r.field(":status", strconv.Itoa(a.status))
	r.field("date", h.dates.at(time.Now()))
	if a.mediaType != "" {
		r.field("content-type", a.mediaType)
	}
	if a.status != http.StatusNoContent {
		r.field("content-length", strconv.Itoa(len(a.doc)))
	}
	for _, f := range a.fields[:a.n] {
		r.field(fieldName3(f.name), f.value)
	}
	if h.cors != nil {
		h.cors.mark3(r, origins)
	}
	r.encoder.Close()
	r.text = quicvarint.Append(append(r.text[:0], frameHeaders), uint64(r.fields.Len()))
	r.text = append(r.text, r.fields.Bytes()...)
	if bare {
		return r.text
	}
	r.text = quicvarint.Append(append(r.text, frameData), uint64(len(a.doc)))
	if len(a.doc) <= mostRoom {
		r.text = append(r.text, a.doc...)
	}
	return r.text
}

// fieldName3 is the name of a field as HTTP/3 has it. Each answer has this one.
func fieldName3(name string) string {
	if name == "X-Request-Id" {
		return "x-request-id"
	}
	return strings.ToLower(name)
}

// write3 takes the stream over from http3, which makes a map, a copy and a write of each part of an answer, and ends it.
func (h *h3) write3(w http.ResponseWriter, from *http.Request, a *answer) {
	h.core.charge(a)
	defer h.core.budget.Release(a.owed)
	str, err := w.(http3.HTTPStreamer).HTTPStream()
	if err != nil { // the answer to CONNECT could not be written either: the client is gone, and http3 ends the stream
		return
	}
	sent := false
	defer func() { // a client that is gone needs no answer
		end, code := str.Close, http3.ErrCodeNoError
		if !sent {
			code = http3.ErrCodeRequestCanceled
			end = func() error { str.CancelWrite(quic.StreamErrorCode(code)); return nil }
		}
		str.CancelRead(quic.StreamErrorCode(code)) // without effect when the body was read to its end
		end()
	}()
	str.SetWriteDeadline(time.Now().Add(writeTimeout + time.Duration(len(a.doc))*time.Second/slowest))
	bare := len(a.doc) == 0 || from.Method == http.MethodHead
	r := replies3.Get().(*reply3)
	_, err = str.QUICStream().Write(r.compose(h, a, from.Header["Origin"], bare))
	replies3.Put(r)
	if err == nil && !bare && len(a.doc) > mostRoom {
		_, err = str.QUICStream().Write(a.doc)
	}
	sent = err == nil
}
