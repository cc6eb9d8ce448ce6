package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// Events over the rate of their key are sent again, alone and under a key of their own; what is rejected for good is saved.
func TestSendAgainWhatIsRetryable(t *testing.T) {
	partly := reply{status: 207, header: http.Header{"Retry-After": {"1"}}, body: `{"accepted":1,"rejected":3,"errors":[` +
		`{"index":0,"code":"key_rate","detail":"d","retryable":true},{"index":2,"code":"malformed_json","detail":"d"},{"index":3,"code":"key_rate","detail":"d","retryable":true}]}`}
	all := reply{status: 429, header: http.Header{"Retry-After": {"2"}}, body: `{"status":429,"code":"key_rate","retryable":true,"rejected":2,"errors":[` +
		`{"index":0,"code":"key_rate","detail":"d","retryable":true},{"index":1,"code":"key_rate","detail":"d","retryable":true}]}`}
	for kind, c := range map[string]struct {
		in     string
		bodies []string
		saved  string
		place  string
	}{
		"application/x-ndjson":               {"1\n\n2\n{\n4\n", []string{"1\n2\n{\n4\n", "1\n4\n", "1\n4\n"}, "{\n", "stdin:4"},
		"application/vnd.headgate.events":    {"\x011\x012\x01{\x014", []string{"\x011\x012\x01{\x014", "\x011\x014", "\x011\x014"}, "\x01{", "stdin: event 3"},
		"application/cloudevents-batch+json": {"[1,2,3,4]", []string{"[1,2,3,4]", "[1,4]", "[1,4]"}, "3\n", "stdin: event 3"},
	} {
		s := scripted(t, partly, all, accepted(2))
		clock, file := &fakeClock{}, filepath.Join(t.TempDir(), "rejected")
		r := commandAt(t.Context(), clock, c.in, "send", "--stream", "s", "--type", kind, "--rejected", file, "-").
			expect(t, 1, c.place+": malformed_json", "1 of 4 events were rejected")
		if got := summaryOf(t, r); got != (summary{Sent: 4, Accepted: 3, Rejected: 1}) {
			t.Errorf("%s: %+v", kind, got)
		}
		var bodies []string
		keys := map[string]bool{}
		for _, q := range s.requests {
			bodies = append(bodies, q.body)
			keys[q.header.Get("Idempotency-Key")] = true
		}
		if !reflect.DeepEqual(bodies, c.bodies) || len(keys) != 3 {
			t.Errorf("%s: %q with %d keys", kind, bodies, len(keys))
		}
		if saved, err := os.ReadFile(file); err != nil || string(saved) != c.saved {
			t.Errorf("%s: saved %q, %v", kind, saved, err)
		}
		if want := []time.Duration{1050 * time.Millisecond, 2050 * time.Millisecond}; !reflect.DeepEqual(clock.waits, want) {
			t.Errorf("%s: waits %v", kind, clock.waits)
		}
	}
}

// What is still over its rate when the time is up is rejected, and so is what a list leaves out.
func TestSendAgainEnds(t *testing.T) {
	over := reply{status: 207, header: http.Header{"Retry-After": {"3"}}, body: `{"accepted":0,"rejected":1,"errors":[{"index":0,"code":"key_rate","detail":"d","retryable":true}]}`}
	s := scripted(t, over)
	r := command(t, "1\n", "send", "--stream", "s", "--timeout", "7s", "-").expect(t, 1, "stdin:1: key_rate", "1 of 1 events were rejected")
	if got := summaryOf(t, r); got != (summary{Sent: 1, Rejected: 1}) || len(s.requests) != 4 {
		t.Errorf("%+v, %d requests", got, len(s.requests))
	}
	s = scripted(t, reply{status: 207, body: `{"accepted":0,"rejected":2,"errors_truncated":true,"errors":[{"index":0,"code":"key_rate","detail":"d","retryable":true}]}`})
	file := filepath.Join(t.TempDir(), "rejected")
	command(t, "1\n2\n", "send", "--stream", "s", "--rejected", file, "-").expect(t, 1, "2 of 2 events were rejected", "1 of them are not in the file of --rejected")
	if len(s.requests) != 1 {
		t.Errorf("%d requests", len(s.requests))
	}
}

func TestRejectedIsNotTheFileItself(t *testing.T) {
	scripted(t, accepted(1))
	file := temporary(t, "f", "1\n")
	command(t, "", "send", "--stream", "s", "--rejected", file, file).expect(t, 2, "is the file that is sent")
	if text, err := os.ReadFile(file); err != nil || string(text) != "1\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// The time that is given is used up, and the time that is told is the one that went by.
func TestSendUsesItsTime(t *testing.T) {
	late := reply{status: 503, header: http.Header{"Retry-After": {"5"}}}
	s := scripted(t, late)
	c := &fakeClock{}
	commandAt(t.Context(), c, "1\n", "send", "--stream", "s", "--timeout", "4s", "-").expect(t, 1, "given up after 4s and 2 attempts: the gateway answered 503")
	if want := []time.Duration{4 * time.Second}; !reflect.DeepEqual(c.waits, want) || len(s.requests) != 2 {
		t.Errorf("waits %v, %d requests", c.waits, len(s.requests))
	}
	scripted(t, refused(503, "backend_unavailable"), reply{}) // then the connection breaks
	command(t, "1\n", "send", "--stream", "s", "--timeout", "3s", "-").
		expect(t, 1, "given up after 3s and ", "broke before an answer", "its last answer was: backend_unavailable: because")
}

// TestSendDoesNotRepeatAHandshake that fails each time: https to a plain port, here.
func TestSendDoesNotRepeatAHandshake(t *testing.T) {
	s := scripted(t, accepted(1))
	c := &fakeClock{}
	at := strings.Replace(s.URL, "http:", "https:", 1)
	r := commandAt(t.Context(), c, "1\n", "send", "--stream", "s", "--url", at, "-").expect(t, 1, "TLS is not spoken there; write http://")
	if len(c.waits) != 0 || strings.Contains(r.stderr, "twice") || strings.Contains(r.stderr, "is it running") {
		t.Errorf("%v\n%s", c.waits, r.stderr)
	}
}

func TestUnreachable(t *testing.T) {
	to := &remote{base: "https://gate", flag: "--url"}
	cert := &x509.Certificate{Raw: []byte{1}, DNSNames: []string{"other"}}
	for name, c := range map[string]struct {
		err       error
		connected bool
		want      string
		again     bool
	}{
		"unknown CA":    {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: cert}}, false, "name the file of who did with --ca", false},
		"bare":          {x509.UnknownAuthorityError{Cert: cert}, false, "with --ca", false},
		"expired":       {x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}, false, "not valid now, and --ca cannot change that", false},
		"other name":    {x509.HostnameError{Certificate: cert, Host: "gate"}, false, "for another name", false},
		"plain":         {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false, "TLS is not spoken there", false},
		"alert":         {&net.OpError{Op: "remote error", Err: tls.AlertError(70)}, false, "speaks TLS 1.3", false},
		"nobody there":  {&net.OpError{Op: "dial", Err: errors.New("refused")}, false, "is it running?", true},
		"QUIC, nobody":  {&quic.IdleTimeoutError{}, false, "is it running?", true},
		"no answer yet": {context.DeadlineExceeded, true, "did not answer in time: its backend may be away or full", true},
		"broken":        {errors.New("EOF"), true, "broke before an answer", true},
	} {
		err := to.unreachable(fmt.Errorf("x: %w", c.err), c.connected)
		o := judge(err, time.Time{})
		if !strings.Contains(err.Error(), c.want) || o.retry != c.again || o.unknown != (c.again && c.connected) {
			t.Errorf("%s: %v, %+v", name, err, o)
		}
	}
}

// TestWordsThatAreNoCommand: each mistake is named, and none is done in silence.
func TestWordsThatAreNoCommand(t *testing.T) {
	for line, want := range map[string]string{
		"help foo":                                `there is no command "foo"; headgate help lists all`,
		"help stream foo":                         `there is no command "stream foo"`,
		"foo":                                     `unknown command "foo"`,
		"serve extra":                             `serve takes no arguments, only flags; got "extra"`,
		"send --stream s --url ftp://x -":         `--url "ftp://x" is no URL of a gateway; it looks like http://127.0.0.1:8080`,
		"tail --stream s --admin-url ftp://x":     "it looks like http://127.0.0.1:9090",
		"send --stream s --timeout 7 -":           `"7" is not a duration`,
		"stream purge web --older-than 7":         `--older-than: "7" is not a duration`,
		"tail --stream s --wait -1s":              "is less than nothing",
		"send --stream s --rejected /no/such/f -": "--rejected: open /no/such/f",
	} {
		t.Setenv("HEADGATE_URL", "")
		command(t, "", strings.Fields(line)...).expect(t, 2, want)
	}
	for line, want := range map[string]string{"help": "Available Commands", "help stream purge": "--older-than", "help send": "(default 1m0s)"} {
		if r := command(t, "", strings.Fields(line)...).expect(t, 0); !strings.Contains(r.out, want) {
			t.Errorf("%s: %s", line, r.out)
		}
	}
	scripted(t, accepted(1))
	command(t, "1\n", "send", "--stream", "s", "--timeout", "7d", "-").expect(t, 0)
}
