package jsonscan

import (
	"encoding/json"
	"fmt"
	"testing"
)

// lines returns n access log lines of about 320 bytes, no two of the same shape: with one line alone the branch
// predictor learns it by heart and the figure flatters.
func lines(n int) [][]byte {
	paths := []string{"/", "/images/kibana-dashboard3.png", "/blog/geekery/ssl-latency.html", "/favicon.ico",
		"/presentations/logstash-monitorama-2013/css/print/paper.css"}
	agents := []string{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36",
		"Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:27.0) Gecko/20100101 Firefox/27.0", "UniversalFeedParser/4.2-pre-314-svn +http://feedparser.org/"}
	all := make([][]byte, n)
	for i := range all {
		all[i] = fmt.Appendf(nil, `{"time":"2015-05-17T10:%02d:43.000Z","remote_ip":"%d.%d.119.%d","remote_user":"-","request":"GET %s?n=%d HTTP/1.1",`+
			`"response":%d,"bytes":%d,"referrer":"http://example.com%s","agent":"%s"}`,
			i%60, 1+i%250, i*7%250, i*13%250, paths[i%len(paths)], i*i, 200+i%5*100, i*i*i%1000003, paths[i*3%len(paths)], agents[i*5%len(agents)])
	}
	return all
}

func pointers(t testing.TB, texts ...string) (all []Pointer) {
	t.Helper()
	for _, text := range texts {
		p, err := ParsePointer(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func BenchmarkCheck(b *testing.B) {
	many := lines(1000)
	for _, c := range []struct {
		name  string
		lines [][]byte
		watch []Pointer
	}{
		{"one line", many[:1], pointers(b, "/remote_ip")},
		{"nothing watched", many, nil},
		{"one watched", many, pointers(b, "/remote_ip")},
		{"two watched", many, pointers(b, "/remote_ip", "/id")},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := New(64, c.watch)
			bench(b, c.lines, func(line []byte) bool { return s.Check(line).Code == "" })
		})
	}
	b.Run("encoding json", func(b *testing.B) { bench(b, many, json.Valid) })
}

func bench(b *testing.B, lines [][]byte, valid func([]byte) bool) {
	total := 0
	for _, line := range lines {
		total += len(line)
	}
	b.SetBytes(int64(total / len(lines)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if !valid(lines[i%len(lines)]) {
			b.Fatal("refused")
		}
	}
}
