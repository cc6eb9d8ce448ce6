package gateway

import (
	"io"
	"net/http"
	"strings"
)

// do makes a request with header fields, NAME: VALUE each (empty ones are none), and returns the answer with its body.
func (in *instance) do(method, url, body string, fields ...string) (*http.Response, string) {
	in.t.Helper()
	req, err := http.NewRequestWithContext(in.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		in.t.Fatal(err)
	}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, ":"); ok {
			req.Header.Set(name, strings.TrimSpace(value))
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return resp, string(doc)
}
