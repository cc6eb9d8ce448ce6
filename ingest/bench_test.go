package ingest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkServe is the whole way of a request but for the socket and the stream: 500 lines like those of an access log.
func BenchmarkServe(b *testing.B) {
	var body []byte
	for i := range 500 {
		body = fmt.Appendf(body, `{"time":"17/May/2015:08:%02d:32 +0000","remote_ip":"93.%d.71.%d","remote_user":"-","request":"GET /downloads/product_%d HTTP/1.1",`+
			`"response":%d,"bytes":%d,"referrer":"-","agent":"Debian APT-HTTP/1.3 (0.8.16~exp12ubuntu10.%d)"}`+"\n", i%60, i%250, i*7%250, i%3, 200+i%4*100, i*i*13, i%30)
	}
	m, err := newMetrics(nil)
	if err != nil {
		b.Fatal(err)
	}
	c := &core{gate: fakeGate{"s": quietStream()}, budget: unlimited(), metrics: m, timeout: time.Minute}
	for _, coded := range []struct{ name, body string }{{"identity", string(body)}, {"gzip", gzipped(string(body))}, {"zstd", zstded(string(body))}} {
		b.Run(coded.name, func(b *testing.B) {
			h := &head{}
			if no := h.parse([]byte("host: x\r\ncontent-type: application/x-ndjson\r\ncontent-encoding: " + coded.name + "\r\n\r\n")); no != nil {
				b.Fatal(no.Problem)
			}
			text := []byte(coded.body)
			src := bytes.NewReader(text)
			r := &request{method: []byte("POST"), target: []byte(events), fields: h.fields, length: int64(len(coded.body)), body: src}
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(text)
				if a := c.serve(context.Background(), r); a.status != 200 {
					b.Fatalf("%d %s", a.status, a.doc)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
		})
	}
}
