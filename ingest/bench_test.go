package ingest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkServe is the whole way of a request but for the socket and the stream: 500 events like lines of an access log.
func BenchmarkServe(b *testing.B) {
	var lines, events []byte
	for i := range 500 {
		data := fmt.Appendf(nil, `{"time":"17/May/2015:08:%02d:32 +0000","remote_ip":"93.%d.71.%d","remote_user":"-","request":"GET /downloads/product_%d HTTP/1.1",`+
			`"response":%d,"bytes":%d,"referrer":"-","agent":"Debian APT-HTTP/1.3 (0.8.16~exp12ubuntu10.%d)"}`, i%60, i%250, i*7%250, i%3, 200+i%4*100, i*i*13, i%30)
		lines = append(append(lines, data...), '\n')
		events = fmt.Appendf(events, `,{"specversion":"1.0","id":"%d","source":"/web","type":"request","time":"2015-05-17T08:%02d:32Z","data":%s}`, i, i%60, data)
	}
	events = append(events, ']')
	events[0] = '['
	for _, c := range []struct{ name, header, body string }{
		{"identity", ndjson, string(lines)},
		{"gzip", ndjson + "\r\nContent-Encoding: gzip", gzipped(string(lines))},
		{"zstd", ndjson + "\r\nContent-Encoding: zstd", zstded(string(lines))},
		{"cloudevents", ceBatchType, string(events)},
	} {
		b.Run(c.name, func(b *testing.B) { benchServe(b, c.header, c.body) })
	}
}

func benchServe(b *testing.B, header, body string) {
	m, err := newMetrics(nil)
	if err != nil {
		b.Fatal(err)
	}
	c := &core{gate: fakeGate{"s": quietStream()}, budget: unlimited(), metrics: m, timeout: time.Minute}
	h := &head{}
	if no := h.parse([]byte("host: x\r\n" + header + "\r\n\r\n")); no != nil {
		b.Fatal(no.Problem)
	}
	text := []byte(body)
	src := bytes.NewReader(text)
	r := &request{method: []byte("POST"), target: []byte(events), fields: h.fields, length: int64(len(body)), body: src}
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(text)
		if a := c.serve(context.Background(), r); a.status != 200 {
			b.Fatalf("%d %s", a.status, a.doc)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
}
