package ingest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

const page = "https://app.example.com"

// plainAnswer reads an answer that need not be JSON.
func (c *client) plainAnswer() (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(body)
}

func preflight(header ...string) string {
	return strings.Join(append([]string{"OPTIONS " + events + " HTTP/1.1", "Host: x"}, header...), "\r\n") + "\r\n\r\n"
}

func TestCORSPreflight(t *testing.T) {
	g := serve(t, Config{Origins: []string{page, "http://localhost:3000"}}, &fakeStream{})
	c := g.dial()
	for _, origin := range []string{page, "http://localhost:3000"} {
		res, body := c.send(preflight("Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type,ce-id, ce-,x-evil,ce-b\"ad,ce-partitionkey")).plainAnswer()
		h := res.Header
		if res.StatusCode != 204 || body != "" || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Methods") != "POST" ||
			h.Get("Vary") != "Origin" || h.Get("Access-Control-Max-Age") != "600" || h.Get("Content-Type") != "" {
			t.Errorf("%s: %d %v %q", origin, res.StatusCode, h, body)
		}
		if got := h.Get("Access-Control-Allow-Headers"); got != corsFields+", ce-id, ce-partitionkey" {
			t.Errorf("fields %q", got)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("credentials are allowed")
		}
	}
	for _, origin := range []string{"https://evil.example", "null", page + ":8443", strings.ToUpper(page), page + "/"} {
		r := c.send(preflight("Origin: "+origin, "Access-Control-Request-Method: POST")).answer().want(t, 403, event.Forbidden)
		if r.Header.Get("Access-Control-Allow-Origin") != "" || r.Header.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", origin, r.Header)
		}
	}
	r := c.send(preflight("Origin: "+page)).answer().want(t, 405, event.MethodNotAllowed) // no preflight
	if r.Header.Get("Allow") != "POST" {
		t.Errorf("header %v", r.Header)
	}
	c.send(preflight("Origin: "+page, "Access-Control-Request-Method: POST", "Content-Length: 1", "Transfer-Encoding: chunked")).answer().want(t, 400, event.AmbiguousFraming)
	c.closed()
	g.nothing()
}

func TestCORSAnswers(t *testing.T) {
	g := serve(t, Config{Origins: []string{page}}, &fakeStream{})
	for _, c := range []struct {
		body, origin string
		status       int
		allowed      bool
	}{
		{"1\n", page, 200, true},
		{"{\n", page, 400, true},
		{"1\n{\n", page, 207, true},
		{"1\n", "https://evil.example", 200, false},
		{"1\n", "", 200, false},
	} {
		header := []string{ndjson}
		if c.origin != "" {
			header = append(header, "Origin: "+c.origin)
		}
		r := g.post(c.body, header...)
		if got := r.Header.Get("Access-Control-Allow-Origin"); r.StatusCode != c.status || r.Header.Get("Vary") != "Origin" ||
			got != "" != c.allowed || c.allowed && (got != c.origin || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "Headgate-Rejected")) {
			t.Errorf("%q from %q: %d %v", c.body, c.origin, r.StatusCode, r.Header)
		}
	}
	r := g.post("1\n", "Content-Type: text/weird", "Origin: "+page).want(t, 415, event.UnsupportedMediaType) // refused by the header
	if r.Header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("header %v", r.Header)
	}
}

// Browsers send no credentials with a preflight.
func TestCORSWithTokens(t *testing.T) {
	g := serve(t, Config{Origins: []string{page}}, &fakeStream{}, guarded)
	c := g.dial()
	if res, _ := c.send(preflight("Origin: "+page, "Access-Control-Request-Method: POST")).plainAnswer(); res.StatusCode != 204 {
		t.Errorf("got %d", res.StatusCode)
	}
	r := c.send(request11(events, "1\n", ndjson, "Origin: "+page)).answer().want(t, 401, event.Unauthorized)
	if r.Header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("header %v", r.Header)
	}
	c = g.dial()
	c.send(request11(events, "1\n", ndjson, "Origin: "+page, goodToken)).answer().want(t, 200, "")
}

func TestCORSIsOffByDefault(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	r := g.post("1\n", ndjson, "Origin: "+page).want(t, 200, "")
	q := g.dial().send(preflight("Origin: "+page, "Access-Control-Request-Method: POST")).answer().want(t, 405, event.MethodNotAllowed)
	for name := range r.Header {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s is there", name)
		}
	}
	if q.Header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("header %v", q.Header)
	}
}

func TestCheckOrigin(t *testing.T) {
	for origin, ok := range map[string]bool{
		page: true, "http://localhost:3000": true, "http://[::1]:8080": true, "https://a.example:8443": true,
		"*": false, "null": false, "": false, "app.example.com": false, page + "/": false, page + "/x": false, "https://App.example.com": false,
		"https://user@a.example": false, "https://a.example?x": false, "https://a.example:443": false, "http://a.example:80": false, "https://*.example.com": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

// Two origins are none, and the answer to a header that could not be read is for any page.
func TestCORSOddHeaders(t *testing.T) {
	g := serve(t, Config{Origins: []string{page}}, &fakeStream{})
	two := []string{"Origin: " + page, "Origin: https://evil.example"}
	for _, origins := range [][]string{two, {two[1], two[0]}} {
		pre := g.dial().send(preflight(append(origins, "Access-Control-Request-Method: POST")...)).answer().want(t, 400, event.BadParameter)
		post := g.post("{}", append(origins, ndjson)...).want(t, 400, event.BadParameter)
		for _, r := range []result{pre, post} {
			if r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%v", r.Header)
			}
		}
	}
	large := g.post("{}", ndjson, "Origin: "+page, "X: "+strings.Repeat("x", readBuffer)).want(t, 431, event.HeadersTooLarge)
	if large.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v", large.Header)
	}
	g.nothing()
	none := serve(t, Config{}, &fakeStream{})
	if r := none.post("{}", ndjson, "X: "+strings.Repeat("x", readBuffer)).want(t, 431, event.HeadersTooLarge); r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without origins: %v", r.Header)
	}
}
