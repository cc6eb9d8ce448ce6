package jsonscan

import (
	"encoding/json"
	"testing"
)

// accessLog has the shape and the mean length (320 bytes) of real access log lines.
const accessLog = `{"time":"2015-05-17T10:05:43.000Z","remote_ip":"10.8.119.127","remote_user":"-","request":"GET /presentations/logstash-monitorama-2013/images/kibana-dashboard3.png HTTP/1.1","response":200,"bytes":171717,"referrer":"http://example.com/","agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML)"}`

func BenchmarkCheck(b *testing.B) {
	key, err := ParsePointer("/remote_ip")
	if err != nil {
		b.Fatal(err)
	}
	id, err := ParsePointer("/id")
	if err != nil {
		b.Fatal(err)
	}
	src := []byte(accessLog)
	for _, c := range []struct {
		name  string
		watch []Pointer
	}{{"none watched", nil}, {"one watched", []Pointer{key}}, {"two watched", []Pointer{key, id}}} {
		b.Run(c.name, func(b *testing.B) {
			s := New(64, c.watch)
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if f := s.Check(src); f.Code != "" {
					b.Fatal(f)
				}
			}
		})
	}
	b.Run("encoding json", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if !json.Valid(src) {
				b.Fatal("invalid")
			}
		}
	})
}
