package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// countField is the header by which a sender says how many events a request carries.
const countField = "Headgate-Count"

// counts is what has come to a sink.
type counts struct {
	Events   int    `json:"events"` // by countField
	Lines    int    `json:"lines"`  // by decompressing, where that is asked for
	Requests int    `json:"requests"`
	Bytes    int    `json:"bytes"`   // as they came
	Trouble  string `json:"trouble"` // the first thing that was wrong, empty for nothing
}

// sink takes and counts requests. Decompressing them costs more than all the rest, so it is done on demand only.
type sink struct {
	decoder *zstd.Decoder

	mu    sync.Mutex // guards the rest
	check bool
	seen  counts
}

func runSink(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet("sink", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	s, err := newSink()
	if err != nil {
		return err
	}
	return serve(ctx, s.handle)
}

func newSink() (*sink, error) {
	decoder, err := zstd.NewReader(nil)
	return &sink{decoder: decoder}, err
}

func (s *sink) handle(c *fasthttp.RequestCtx) {
	switch {
	case c.IsPost():
		s.take(c)
	case c.IsPut(): // begins anew, with or without checking
		s.mu.Lock()
		s.seen, s.check = counts{}, c.QueryArgs().GetBool("check")
		s.mu.Unlock()
	default:
		s.mu.Lock()
		seen := s.seen
		s.mu.Unlock()
		json.NewEncoder(c).Encode(seen)
	}
}

func (s *sink) take(c *fasthttp.RequestCtx) {
	events, err := strconv.Atoi(string(c.Request.Header.Peek(countField)))
	s.mu.Lock()
	check := s.check
	s.mu.Unlock()
	lines := 0
	if check && err == nil {
		if lines, err = s.lines(c); err == nil && lines != events {
			err = fmt.Errorf("%s: %d, but there are %d lines", countField, events, lines)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Events += events
	s.seen.Lines += lines
	s.seen.Requests++
	s.seen.Bytes += len(c.Request.Body())
	if err != nil && s.seen.Trouble == "" {
		s.seen.Trouble = err.Error()
	}
}

// lines counts the lines of a request.
func (s *sink) lines(c *fasthttp.RequestCtx) (int, error) {
	h := &c.Request.Header
	if t := h.ContentType(); string(t) != "application/x-ndjson" {
		return 0, fmt.Errorf("the media type is %q", t)
	}
	if e := h.ContentEncoding(); string(e) != "zstd" {
		return 0, fmt.Errorf("the coding is %q", e)
	}
	text, err := s.decoder.DecodeAll(c.Request.Body(), nil)
	return bytes.Count(text, []byte{'\n'}), err
}

// serve answers on a free port of the loopback interface, prints its address, and ends with ctx.
func serve(ctx context.Context, handle fasthttp.RequestHandler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &fasthttp.Server{Handler: handle, MaxRequestBodySize: 64 << 20, NoDefaultServerHeader: true, CloseOnShutdown: true}
	stop := context.AfterFunc(ctx, func() { s.Shutdown() })
	defer stop()
	fmt.Println(ln.Addr())
	return s.Serve(ln)
}

// sinkClient asks a sink.
type sinkClient struct{ url string }

func (s sinkClient) counts(ctx context.Context) (c counts, err error) {
	text, err := get(ctx, s.url)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// reset makes the sink begin anew; with check it decompresses and counts lines.
func (s sinkClient) reset(ctx context.Context, check bool) error {
	_, err := call(ctx, http.MethodPut, s.url+"?check="+strconv.FormatBool(check))
	return err
}
