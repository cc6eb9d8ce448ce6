package gateway

import (
	"encoding/json"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// Who comes before it is ready is told that it starts, and who comes late that it stops; both may come again.
func TestStartingAndStoppingAreToldApart(t *testing.T) {
	g, err := New(zero(t), Deps{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Open("web")
	wantCode(t, err, event.Starting)
	g.accepting.Store(true)
	if err := g.notAccepting(); err != nil {
		t.Error(err)
	}
	g.accepting.Store(false)
	g.stopping.Store(true)
	_, err = g.Open("web")
	wantCode(t, err, event.Draining)
}

// A stream that is made by the API is held to what one of the file is: its largest event has room in the part it is sure of.
func TestAStreamOfTheAPIHasRoomForItsLargestEvent(t *testing.T) {
	cfg := zero(t)
	cfg.Backends[config.LocalBackend].JetStream.MaxBytes = 100 << 20
	in := start(t, cfg)
	defer in.end()
	_, _, err := in.SetStream(t.Context(), "big", json.RawMessage(`{"limits":{"event":"3MiB"}}`), admin.Match{})
	wantCode(t, err, event.BadConfiguration)
	if _, _, err := in.SetStream(t.Context(), "big", json.RawMessage(`{"limits":{"event":"2MiB"}}`), admin.Match{}); err != nil {
		t.Error(err)
	}
}
