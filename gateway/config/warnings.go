package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/auth"
	"github.com/headgate-io/headgate/internal/certs"
)

// warnings names what is valid, and weak or hardly meant so.
func (c *Config) warnings(now time.Time) (all []string) {
	all = append(c.authWarnings(), c.tokenWarnings()...)
	if t := c.HTTP.TLS; t.Cert != "" {
		if k, err := certs.Open(certs.Pair{Cert: t.Cert, Key: t.Key}, nil); err == nil {
			if said := k.Untimely(now); said != "" {
				all = append(all, "http.tls.cert: "+said)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		switch l := c.Streams[name].Limits; {
		case l.Event > l.Inflated:
			all = append(all, fmt.Sprintf("streams.%s.limits: no event can have the %s of event, since a request has at most %s (inflated)", name, l.Event, l.Inflated))
		case l.Event > l.Body:
			all = append(all, fmt.Sprintf("streams.%s.limits: an event of more than %s (body) can come compressed only, although event is %s", name, l.Body, l.Event))
		}
	}
	return all
}

// authWarnings names what lets more people in than may be meant.
func (c *Config) authWarnings() []string {
	if c.Auth != nil {
		return c.SecretWarnings()
	}
	if host, _, err := net.SplitHostPort(c.Admin.Listen); err == nil && !loopback(host) {
		return []string{fmt.Sprintf("admin.listen: %s can be reached from other machines, and without auth whoever reaches it may change everything", c.Admin.Listen)}
	}
	return nil
}

// SecretWarnings names secrets that can be guessed, at a start and whenever they are read again.
func (c *Config) SecretWarnings() (all []string) {
	for i := range c.Auth.Tokens {
		secrets, err := c.Auth.Tokens[i].secrets(map[string]string{})
		short := slices.ContainsFunc(secrets, func(s string) bool { return len(s) < shortSecret })
		if err == nil && short {
			all = append(all, fmt.Sprintf("auth.tokens.%d.secret: has fewer than %d characters and can be guessed; make one with `openssl rand -hex 32`", i, shortSecret))
		}
	}
	return all
}

// tokenWarnings names streams of tokens that only the admin API can make.
func (c *Config) tokenWarnings() (all []string) {
	if c.Auth == nil || c.CreatesStreams() {
		return nil
	}
	for i, t := range c.Auth.Tokens {
		for _, name := range t.Streams {
			if _, known := c.Streams[name]; !known && name != auth.All {
				all = append(all, fmt.Sprintf("auth.tokens.%d.streams: stream %q is not configured, and auto_create is false: it is there only when the admin API makes it", i, name))
			}
		}
	}
	return all
}
