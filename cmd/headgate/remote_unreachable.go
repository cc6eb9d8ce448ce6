package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// errHandshake is a connection on which no request can be sent, now or later.
var errHandshake = errors.New("no secure connection")

// errUnreached is a gateway to which there was no connection, so that nothing was sent.
var errUnreached = errors.New("cannot reach the gateway")

// unreachable says what to do about a request that got no answer; connected says whether there was a connection for it.
func (r *remote) unreachable(err error, connected bool) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if why := handshakeProblem(err); why != "" {
		return fmt.Errorf("%w to %s: %s (%w)", errHandshake, r.base, why, err)
	}
	if connected && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the gateway at %s took the request and did not answer in time: its backend may be away or full (its admin API says so at /readyz?verbose): %w", r.base, err)
	}
	if connected {
		return fmt.Errorf("the connection to the gateway at %s broke before an answer: %w", r.base, err)
	}
	return fmt.Errorf("%w at %s: %w; is it running? (headgate serve, or give %s)", errUnreached, r.base, err, r.flag)
}

// handshakeProblem says what to do about a handshake that fails whenever it is tried; empty for other errors.
func handshakeProblem(err error) string {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "TLS is not spoken there; write http:// or the port of http.tls.listen"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "TLS is not spoken there; write http:// or the port of http.tls.listen"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "nobody trusted here has signed the certificate; name the file of who did with --ca"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the certificate is not valid now, and --ca cannot change that; the gateway needs a new one, or a clock is wrong"
		}
		return "the certificate cannot be used; the gateway needs another one, or --ca another file"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another name; write one of its names, or the gateway needs one for this name"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate is not trusted; name the file of who signed it with --ca"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the other side refuses the handshake; a gateway speaks TLS 1.3"
	}
	return ""
}
