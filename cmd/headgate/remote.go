package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
)

// remote is one listener of a gateway.
type remote struct {
	base  string // URL without a last slash
	flag  string // which flag sets it
	token string // sent with each request; empty: none
	http  *http.Client
	tls   *tls.Config // of QUIC, else nil
}

// address is the flags for a listener's URL, the token it wants, and how it is trusted under https.
type address struct {
	flag, url, token, ca string
	example              string
	cmd                  *cobra.Command // whose flags they are
	beside               *address       // has the token; nil: this one
}

// ingestFlag adds --url, --ca and --token.
func ingestFlag(cmd *cobra.Command) *address {
	a := urlFlag(cmd, "url", "HEADGATE_URL", "http://127.0.0.1:8080")
	cmd.Flags().StringVar(&a.ca, "ca", "", "for https: PEM file of the certificates to trust (default: the system's)")
	return a
}

// adminFlag adds --admin-url and --token to cmd and the commands below it.
func adminFlag(cmd *cobra.Command) *address {
	return urlFlag(cmd, "admin-url", "HEADGATE_ADMIN_URL", "http://127.0.0.1:9090")
}

// adminFlagBeside adds --admin-url to a command that has the flags of beside: their token is for both listeners.
func adminFlagBeside(beside *address) *address {
	a := urlOnlyFlag(beside.cmd, "admin-url", "HEADGATE_ADMIN_URL", "http://127.0.0.1:9090")
	a.beside = beside
	return a
}

func urlFlag(cmd *cobra.Command, name, variable, otherwise string) *address {
	a := urlOnlyFlag(cmd, name, variable, otherwise)
	cmd.PersistentFlags().StringVar(&a.token, "token", "", tokenHelp)
	return a
}

func urlOnlyFlag(cmd *cobra.Command, name, variable, otherwise string) *address {
	a := &address{flag: "--" + name, cmd: cmd, example: otherwise}
	if v := os.Getenv(variable); v != "" {
		otherwise = v
	}
	cmd.PersistentFlags().StringVar(&a.url, name, otherwise, "the gateway; also "+variable)
	return a
}

// dial checks the address; nothing is connected yet.
func (a *address) dial() (*remote, error) {
	base := a.url
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("%s %q is no URL of a gateway; it looks like %s", a.flag, a.url, a.example)
	}
	token, err := resolveToken(cmp.Or(a.beside, a).token)
	if err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxConnsPerHost = 1
	t.DisableCompression = true
	if t.TLSClientConfig, err = trust(u.Hostname(), a.ca, a.cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	return &remote{base: strings.TrimRight(base, "/"), flag: a.flag, token: token, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// call is one request to the admin API with a JSON answer.
type call struct {
	method, path string
	mediaType    string // of body
	body         []byte
	header       http.Header // more headers; may be nil
}

// do is dial, and do of what it returns.
func (a *address) do(ctx context.Context, c call, out any) (http.Header, error) {
	to, err := a.dial()
	if err != nil {
		return nil, err
	}
	return to.do(ctx, c, out)
}

// do sends c and decodes the answer into out, unless that is nil. It returns the answer's headers, and a *refusedError
// for a status other than 2xx.
func (r *remote) do(ctx context.Context, c call, out any) (http.Header, error) {
	resp, err := r.send(ctx, c)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", r.base, err)
	}
	if out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, r.foreign(err)
	}
	return resp.Header, nil
}

// send sends c and returns an answer with a status of 2xx.
func (r *remote) send(ctx context.Context, c call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, r.base+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, usageError(err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if c.mediaType != "" {
		req.Header.Set("Content-Type", c.mediaType)
	}
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	resp, err := r.http.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		return nil, r.unreachable(err, connected)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

// errForeign is an answer that no Headgate gives.
var errForeign = errors.New("does not answer like a Headgate")

func (r *remote) foreign(err error) error {
	return fmt.Errorf("%s %w (check %s): %w", r.base, errForeign, r.flag, err)
}

// refusedError is an answer that is not 2xx.
type refusedError struct {
	status int
	header http.Header
	body   []byte           // as it came, at most answerBytes
	doc    problem.Document // zero when the body is no problem
}

// answerBytes bounds an answer that says what went wrong.
const answerBytes = 1 << 20

func refusal(resp *http.Response) *refusedError {
	e := &refusedError{status: resp.StatusCode, header: resp.Header}
	e.body, _ = io.ReadAll(io.LimitReader(resp.Body, answerBytes)) // what can't be read has a status still
	if json.Unmarshal(e.body, &e.doc) != nil {
		e.doc = problem.Document{}
	}
	return e
}

func (e *refusedError) Error() string {
	if e.doc.Code == "" {
		return fmt.Sprintf("the gateway answered %d %s", e.status, http.StatusText(e.status))
	}
	if e.doc.Code == event.Unauthorized {
		return fmt.Sprintf("%s: %s (give --token or %s)", e.doc.Code, e.doc.Detail, tokenVariable)
	}
	if e.doc.Limit != 0 {
		return fmt.Sprintf("%s: %s (limit %d, here %d)", e.doc.Code, e.doc.Detail, e.doc.Limit, e.doc.Observed)
	}
	return fmt.Sprintf("%s: %s", e.doc.Code, e.doc.Detail)
}
