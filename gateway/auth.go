package gateway

import (
	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/settings"
)

// reloadTokens reads the secrets again; when one is missing all stay as they were.
func (g *Gateway) reloadTokens() {
	if g.tokens == nil {
		return
	}
	all, err := g.cfg.Auth.Read(&g.cfg)
	if err == nil {
		err = g.tokens.Replace(all)
	}
	if err != nil {
		g.log.Error("the secrets of tokens are not read again, the old ones stay in force", "error", settings.At("auth.tokens", err))
		return
	}
	for _, w := range g.cfg.SecretWarnings() {
		g.log.Warn(w)
	}
	g.log.Info("the secrets of tokens were read again", "tokens", len(all))
}

// senders is what ingest asks, nil when everybody may send.
func (g *Gateway) senders() ingest.Auth {
	if g.tokens == nil {
		return nil // not a nil *Tokens in an interface
	}
	return g.tokens
}

// stewards is what the admin API asks, nil when everybody may do everything.
func (g *Gateway) stewards() admin.Auth {
	if g.tokens == nil {
		return nil
	}
	return g.tokens
}
