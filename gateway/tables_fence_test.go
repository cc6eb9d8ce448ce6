package gateway

import (
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/webhook"
	"github.com/headgate-io/headgate/gateway/config"
)

func TestWhichFenceAStreamHas(t *testing.T) {
	for _, c := range []struct {
		backend        forward.Backend
		ordering, want string
	}{
		{(*jetstream.Backend)(nil), "source", "seal"}, {(*distant)(nil), "strict", "seal"},
		{(*webhook.Backend)(nil), "source", "drain"}, {(*webhook.Backend)(nil), "none", "none"},
	} {
		s := &stream{delivery: delivery{Backend: c.backend}}
		if got := s.fence(&config.Stream{Ordering: c.ordering}); got != c.want {
			t.Errorf("%T, %s: %s, want %s", c.backend, c.ordering, got, c.want)
		}
	}
}
