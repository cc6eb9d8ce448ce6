package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

// runBare serves the least an HTTP server does: read a body and answer.
func runBare(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet("bare", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	return serve(ctx, func(c *fasthttp.RequestCtx) {
		c.SetStatusCode(fasthttp.StatusAccepted)
		c.SetBodyString(strconv.Itoa(len(c.PostBody())))
	})
}

const (
	floorBatch  = 1 << 20               // bytes before compression
	floorLinger = 20 * time.Millisecond // age at which a smaller batch is sent
)

// floor is the least that does the gateway's job on lines it trusts: a search for the key and for the filter's field
// instead of JSON, one lane instead of many, no metadata, no limits, nothing kept when it is stopped.
type floor struct {
	filter bool
	sink   string
	open   chan *floorPart // batches being filled, one for each core; who takes one has it alone
	full   chan *floorPart
	empty  chan *floorPart // the number of batches bounds the memory: a request waits for one
}

// floorPart is a batch.
type floorPart struct {
	raw      []byte
	events   int
	keyBytes int // of all keys, so that looking for them is of use
	since    time.Time
}

func runFloor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	sink := flags.String("sink", "", "URL of the sink")
	filter := flags.Bool("filter", false, "drop lines whose response is 500 to 599")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cores := runtime.GOMAXPROCS(0)
	f := &floor{filter: *filter, sink: *sink,
		open: make(chan *floorPart, cores), full: make(chan *floorPart, 2*cores), empty: make(chan *floorPart, 4*cores)}
	for range cores {
		f.open <- newFloorPart()
	}
	for range 3 * cores {
		f.empty <- newFloorPart()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var senders sync.WaitGroup
	for range cores {
		senders.Go(func() { cancel(f.send(ctx)) })
	}
	senders.Go(func() { f.linger(ctx) })
	err := serve(ctx, f.handle)
	cancel(nil)
	senders.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		fmt.Fprintln(os.Stderr, "send:", cause)
	}
	return err
}

func newFloorPart() *floorPart { return &floorPart{raw: make([]byte, 0, 2*floorBatch)} }

func (f *floor) handle(c *fasthttp.RequestCtx) {
	p := <-f.open
	p.add(c.PostBody(), f.filter)
	f.pass(p, len(p.raw) >= floorBatch)
	c.SetStatusCode(fasthttp.StatusAccepted)
}

// pass gives an open batch back, or sends it and opens another.
func (f *floor) pass(p *floorPart, send bool) {
	if send {
		f.full <- p
		p = <-f.empty
	}
	f.open <- p
}

// add copies the lines of a request but for those that are dropped, in pieces as long as can be.
func (p *floorPart) add(body []byte, filter bool) {
	if len(p.raw) == 0 {
		p.since = time.Now()
	}
	from := 0
	for at := 0; at < len(body); {
		end := at + bytes.IndexByte(body[at:], '\n') + 1
		if end == at {
			end = len(body)
		}
		line := body[at:end]
		if filter && failed(line) {
			p.raw = append(p.raw, body[from:at]...)
			from = end
		} else {
			p.events++
			p.keyBytes += len(key(line))
		}
		at = end
	}
	p.raw = append(p.raw, body[from:]...)
}

var (
	keyName    = []byte(`"remote_ip":"`)
	statusName = []byte(`"response":`)
)

func key(line []byte) []byte {
	_, rest, _ := bytes.Cut(line, keyName)
	return rest[:max(bytes.IndexByte(rest, '"'), 0)]
}

func failed(line []byte) bool {
	_, rest, _ := bytes.Cut(line, statusName)
	return len(rest) > 3 && rest[0] == '5' && rest[3] == ','
}

// send compresses and posts batches until ctx ends.
func (f *floor) send(ctx context.Context) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	client := &fasthttp.Client{NoDefaultUserAgentHeader: true}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	req.SetRequestURI(f.sink)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/x-ndjson")
	req.Header.SetContentEncoding("zstd")
	var packed []byte
	for {
		var p *floorPart
		select {
		case p = <-f.full:
		case <-ctx.Done():
			return ctx.Err()
		}
		packed = encoder.EncodeAll(p.raw, packed[:0])
		req.SetBodyRaw(packed)
		req.Header.Set(countField, strconv.Itoa(p.events))
		p.raw, p.events = p.raw[:0], 0
		f.empty <- p
		if err := client.Do(req, resp); err != nil {
			return err
		}
		if s := resp.StatusCode(); s != fasthttp.StatusOK {
			return fmt.Errorf("the sink answered %d", s)
		}
	}
}

// linger sends batches that do not fill up.
func (f *floor) linger(ctx context.Context) {
	tick := time.NewTicker(floorLinger)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for range cap(f.open) {
			p := <-f.open
			f.pass(p, len(p.raw) > 0 && time.Since(p.since) >= floorLinger)
		}
	}
}
