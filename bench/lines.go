package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// What the lines are: an access log with hot clients.
const (
	lineCount    = 200_000
	addresses    = 50_000
	zipfExponent = 1.1 // the busiest address has 13.9 % of the lines
	failedShare  = 0.10
	lineSeed     = 20260302
)

// line is one event and what the harness must know of it.
type line struct {
	text   []byte // JSON, without the newline
	failed bool   // its response is 500 to 599: the filters drop it
}

var agents = [...]string{
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
	"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
	"Debian APT-HTTP/1.3 (2.6.1)",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15",
	"Go-http-client/2.0",
	"python-requests/2.32.3",
	"kube-probe/1.31",
}

var referrers = [...]string{"-", "-", "-", "https://example.com/", "https://example.com/search?q=headgate", "https://example.org/blog/2026/03/"}

var paths = [...]string{"/", "/index.html", "/products/", "/img/product-", "/static/app.", "/api/v1/orders/", "/api/v1/sessions", "/downloads/release-"}

var good = [...]int{200, 200, 200, 200, 200, 200, 204, 206, 301, 302, 304, 304, 400, 401, 403, 404, 404}
var bad = [...]int{500, 500, 502, 503, 503, 504}

// makeLines returns the lines, the same ones on every call and machine.
func makeLines() []line {
	r := rand.New(rand.NewPCG(lineSeed, 1))
	w := writer{r: r, clients: rand.NewZipf(r, zipfExponent, 1, addresses-1), at: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)}
	lines := make([]line, lineCount)
	text := make([]byte, 0, lineCount*270)
	for i := range lines {
		from := len(text)
		lines[i].failed = r.Float64() < failedShare
		text = w.append(text, lines[i].failed)
		lines[i].text = text[from:len(text):len(text)]
	}
	return lines
}

// writer writes one line after another.
type writer struct {
	r       *rand.Rand
	clients *rand.Zipf
	at      time.Time
}

func (w *writer) append(b []byte, failed bool) []byte {
	r := w.r
	w.at = w.at.Add(time.Duration(r.IntN(40)) * time.Millisecond)
	status, size := good[r.IntN(len(good))], r.IntN(1<<(8+r.IntN(10)))
	if failed {
		status = bad[r.IntN(len(bad))]
	}
	path := paths[r.IntN(len(paths))]
	b = w.at.AppendFormat(append(b, `{"time":"`...), "2006-01-02T15:04:05.000Z")
	b = appendAddress(append(b, `","remote_ip":"`...), w.clients.Uint64())
	b = append(append(b, `","remote_user":"-","request":"GET `...), path...)
	if len(path) > len("/index.html") {
		b = strconv.AppendInt(b, int64(r.IntN(1+r.IntN(2000))), 10)
	}
	b = strconv.AppendInt(append(b, ` HTTP/1.1","response":`...), int64(status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), int64(size), 10)
	b = append(append(b, `,"referrer":"`...), referrers[r.IntN(len(referrers))]...)
	b = append(append(b, `","agent":"`...), agents[min(r.IntN(len(agents)), r.IntN(len(agents)))]...)
	return append(b, `"}`...)
}

// appendAddress spreads the clients over 10.0.0.0/8: the multiplier is odd, so no two share an address.
func appendAddress(b []byte, client uint64) []byte {
	n := (client*0x9e3779 + 0x51ed27) & 0xffffff
	b = strconv.AppendUint(append(b, "10."...), n>>16, 10)
	b = strconv.AppendUint(append(b, '.'), n>>8&0xff, 10)
	return strconv.AppendUint(append(b, '.'), n&0xff, 10)
}

// body is n lines from the i-th on, going round, each with its newline.
func body(lines []line, i, n int) []byte {
	var b bytes.Buffer
	for range n {
		b.Write(lines[i%len(lines)].text)
		b.WriteByte('\n')
		i++
	}
	return b.Bytes()
}

// kept is how many of the first n events pass the filter.
func kept(lines []line, n int) (events int) {
	for i := range n {
		if !lines[i%len(lines)].failed {
			events++
		}
	}
	return events
}

// printLines writes the lines to standard output, to look at or to send by other means.
func printLines(context.Context, []string) error {
	for _, l := range makeLines() {
		if _, err := fmt.Fprintf(os.Stdout, "%s\n", l.text); err != nil {
			return err
		}
	}
	return nil
}
