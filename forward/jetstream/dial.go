package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Address says how an external NATS server, or a cluster of them, is reached.
type Address struct {
	URL   string // nats://, tls://, ws:// or wss://; several of a cluster are separated by commas
	Creds string // credentials: file:PATH, env:NAME (which holds the file's text), or a path; empty: none
	Known bool   // it was reached before: a start goes on without it, and connects when it is back
}

const (
	// startPatience is how long a server may be away at start: long enough for one that is started at the same time.
	startPatience = 10 * time.Second
	knownPatience = 2 * time.Second // the same for one that was reached before
	connectWait   = 2 * time.Second
	longestPause  = 5 * time.Second // between attempts to connect again
	pingEvery     = 10 * time.Second
)

// Check returns what is wrong with the address, as far as that can be seen without connecting.
func (a Address) Check() error {
	for _, part := range strings.Split(a.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Host == "" {
			return errors.New("url: write for example nats://127.0.0.1:4222")
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf("url: the scheme is nats, tls, ws or wss, not %q", u.Scheme)
		}
	}
	_, err := a.credentials()
	return err
}

// String is the URL without passwords.
func (a Address) String() string {
	parts := strings.Split(a.URL, ",")
	for i, part := range parts {
		if u, err := url.Parse(strings.TrimSpace(part)); err == nil {
			parts[i] = u.Redacted()
		}
	}
	return strings.Join(parts, ",")
}

// credentials returns the option for a.Creds, after a look whether they can be used.
func (a Address) credentials() (nats.Option, error) {
	kind, rest, ok := strings.Cut(a.Creds, ":")
	var option nats.Option
	switch {
	case a.Creds == "":
		return func(*nats.Options) error { return nil }, nil
	case ok && kind == "env":
		text := os.Getenv(rest)
		if text == "" {
			return nil, fmt.Errorf("creds: the variable %s is not set", rest)
		}
		option = nats.UserCredentialBytes([]byte(text))
	case ok && kind == "file":
		if _, err := os.Stat(rest); err != nil {
			return nil, fmt.Errorf("creds: %w", err)
		}
		option = nats.UserCredentials(rest) // read again at each connection
	default:
		_, err := os.Stat(a.Creds)
		switch named := strings.HasPrefix(a.Creds, "/") || strings.HasPrefix(a.Creds, "."); {
		case err != nil && named:
			return nil, fmt.Errorf("creds: %w", err)
		case err != nil: // it may be the secret itself
			return nil, errors.New("creds: write file:PATH or env:NAME; what stands there is not the path of a file either")
		}
		option = nats.UserCredentials(a.Creds)
	}
	var o nats.Options
	if err := option(&o); err != nil {
		return nil, fmt.Errorf("creds: %w", err)
	}
	if _, err := o.UserJWT(); err != nil {
		return nil, fmt.Errorf("creds: they hold no user JWT: %w", err)
	}
	if _, err := o.SignatureCB([]byte("nonce")); err != nil {
		return nil, fmt.Errorf("creds: they hold no seed of a user: %w", err)
	}
	return option, nil
}

// Dial connects under the given names, one connection each, and waits a moment for a server that is not there yet. Once
// connected, a connection comes back by itself however long the server was away; meanwhile what is published fails at
// once instead of waiting in memory.
func Dial(ctx context.Context, a Address, log *slog.Logger, names ...string) (all []*nats.Conn, err error) {
	creds, err := a.credentials()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience(a))
	defer cancel()
	for _, name := range names {
		nc, err := dial(ctx, a, name, creds, log)
		if err != nil {
			for _, open := range all {
				open.Close()
			}
			return nil, fmt.Errorf("connect to %s: %w", a, err)
		}
		all = append(all, nc)
	}
	return all, nil
}

func patience(a Address) time.Duration {
	if a.Known {
		return knownPatience
	}
	return startPatience
}

func dial(ctx context.Context, a Address, name string, creds nats.Option, log *slog.Logger) (*nats.Conn, error) {
	log = log.With("server", a.String(), "connection", name)
	connect := func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(a.URL, append(more, creds, nats.Name("headgate-"+name), nats.Timeout(connectWait),
			nats.MaxReconnects(-1), nats.CustomReconnectDelay(reconnectPause), nats.ReconnectBufSize(-1),
			nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.IgnoreAuthErrorAbort(),
			nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
				if !nc.IsClosed() { // by ourselves
					log.Warn("backend is away; connecting again for ever", "error", err)
				}
			}),
			nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("backend is back", "at", nc.ConnectedUrlRedacted()) }),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("nats connection", "error", err) }))...)
	}
	for said := false; ; said = true {
		nc, err := connect()
		if err == nil {
			return nc, nil
		}
		if !said {
			log.Warn("backend is not there: the start waits for it", "at_most", patience(a).String(), "error", err)
		}
		if errors.Is(err, nats.ErrAuthorization) {
			return nil, err
		}
		select {
		case <-time.After(connectWait / 8):
		case <-ctx.Done():
			if a.Known && context.Cause(ctx) == context.DeadlineExceeded {
				log.Warn("backend is away; connecting again for ever", "error", err)
				return connect(nats.RetryOnFailedConnect(true), nats.ConnectHandler(func(nc *nats.Conn) { log.Info("backend is there", "at", nc.ConnectedUrlRedacted()) }))
			}
			return nil, fmt.Errorf("%w: it was not there within %v, and never before; start the server first, or put the URL right. "+
				"Once it was reached, a start goes on without it", err, patience(a))
		}
	}
}

// reconnectPause is the pause before the next round of attempts: doubled each time, half of it random.
func reconnectPause(attempts int) time.Duration {
	pause := min(longestPause, 50*time.Millisecond<<min(attempts, 10))
	return pause/2 + rand.N(pause/2)
}
