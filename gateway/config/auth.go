package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/internal/auth"
	"github.com/headgate-io/headgate/internal/settings"
)

// Auth is who may use the gateway. Where it is missing everybody may do everything.
type Auth struct {
	Tokens []Token `json:"tokens"`
}

// Token is a caller: who holds one of its secrets.
type Token struct {
	ID      string   `json:"id"`
	Secret  Secret   `json:"secret"`  // file:PATH or env:NAME; several, one a line, are all valid
	Streams []string `json:"streams"` // names, or "*" for all and for what belongs to none
	Actions []string `json:"actions"` // send, read, admin (which includes read)
}

// Secret is file:PATH or env:NAME. It reads itself from any text or number, so that no error about its kind repeats what
// may be the secret itself.
type Secret string

// UnmarshalText takes what is written.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

const (
	maxTokenID  = 128
	shortSecret = 16 // characters: below, it can be guessed
)

// Tokens returns the tokens, nil without an Auth: everybody may do everything.
func (c *Config) Tokens() (*auth.Tokens, error) {
	if c.Auth == nil {
		return nil, nil
	}
	all, err := c.Auth.Read(c)
	if err != nil {
		return nil, err
	}
	return auth.New(all)
}

// Read reads the secrets and returns the tokens, or everything that is wrong, each with its path in tokens.
func (a *Auth) Read(c *Config) ([]auth.Token, error) {
	if len(a.Tokens) == 0 {
		return nil, errors.New("there is none, so nobody could do anything; leave auth out to let everybody in")
	}
	var problems []error
	seen := map[string]string{} // what must be there once -> whose it is
	all := make([]auth.Token, len(a.Tokens))
	for i := range a.Tokens {
		cfg := &a.Tokens[i]
		secrets, err := cfg.secrets(seen)
		problems = append(problems, settings.At(strconv.Itoa(i), errors.Join(settings.At("id", cfg.idProblem(seen)),
			settings.At("streams", cfg.streamsProblem(c)), settings.At("actions", cfg.actionsProblem()), settings.At("secret", err))))
		all[i] = auth.Token{ID: cfg.ID, Secrets: secrets, Streams: cfg.Streams}
		for _, action := range cfg.Actions {
			all[i].Actions = append(all[i].Actions, auth.Action(action))
		}
	}
	return all, errors.Join(problems...)
}

func (t *Token) idProblem(seen map[string]string) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if t.ID == "" || len(t.ID) > maxTokenID || strings.ContainsFunc(t.ID, odd) {
		return fmt.Errorf("%q must be 1 to %d printable ASCII characters without spaces", t.ID, maxTokenID)
	}
	if seen["id "+t.ID] != "" {
		return fmt.Errorf("%q is there twice; several secrets of one caller go into one file, one a line", t.ID)
	}
	seen["id "+t.ID] = t.ID
	return nil
}

// streamsProblem refuses streams that can't be: where the file names all there are, another one is a typing error.
func (t *Token) streamsProblem(c *Config) error {
	if len(t.Streams) == 0 {
		return fmt.Errorf("name those that the token is for, or %q for all", auth.All)
	}
	for _, name := range t.Streams {
		_, known := c.Streams[name]
		switch {
		case name == auth.All, known:
		case !ValidName(name):
			return fmt.Errorf("%q is not a stream name", name)
		case len(c.Streams) > 0 && !c.CreatesStreams():
			return fmt.Errorf("there is no stream %q in streams; define it there, or write %q", name, auth.All)
		}
	}
	return nil
}

func (t *Token) actionsProblem() error {
	if len(t.Actions) == 0 {
		return fmt.Errorf("name what the token may do: some of %q", auth.Actions())
	}
	for _, a := range t.Actions {
		if !slices.Contains(auth.Actions(), auth.Action(a)) {
			return fmt.Errorf("must be among %q, got %q", auth.Actions(), a)
		}
	}
	return nil
}

// secrets reads the token's secrets, each of which may be there once in the whole configuration.
func (t *Token) secrets(seen map[string]string) (all []string, err error) {
	text, err := settings.ReadSecret(string(t.Secret))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		if !bearable(text) {
			return nil, errors.New("must consist of letters, digits and -._~+/= only, since it is sent in a header (RFC 6750 section 2.1)")
		}
		if whose := seen["secret "+text]; whose != "" {
			return nil, fmt.Errorf("the same as one of token %q", whose)
		}
		seen["secret "+text] = t.ID
		all = append(all, text)
	}
	return all, nil
}

func bearable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~+/=", r))
	})
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
