package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/settings"
)

// B07: a stream whose backend is down fills its half of the spool, and no more of memory than others leave; then it
// refuses, and another stream goes on as before.
func TestB07ADeadBackendHoldsUpItsOwnStreamOnly(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	node.Judge(func(*forward.Run) forwardtest.Answer { return forwardtest.Answer{Status: 503} })
	cfg := zero(t)
	cfg.Memory, cfg.Spool.MaxBytes = 16<<20, 16<<20
	cfg.Backends["lake"] = config.Backend{Webhook: &config.Webhook{Nodes: []string{node.URL}, Timeout: settings.Duration(1e9)}}
	cfg.Streams = map[string]config.Stream{"dead": {Backend: "lake"}, "alive": {}}
	in := start(t, cfg)
	noise := make([]byte, 150<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf("{\"a\":%q}", base64.StdEncoding.EncodeToString(noise))
	taken, status, doc := 0, 0, ""
	for range 400 {
		if status, doc = in.post("dead", body); status == 200 {
			taken++
		} else if strings.Contains(doc, "spool_full") {
			break
		}
	}
	if status != 503 || taken < 30 {
		t.Fatalf("after %d requests of 200 KB: %d %s", taken, status, doc)
	}
	st := (*in.streams.Load())["dead"].spool.Stats()
	if st.Bytes < 8<<20 || st.Bytes > 12<<20 || st.Events != taken {
		t.Errorf("%d events taken, the spool has %+v", taken, st)
	}
	if held, limit := in.lanes.Held(), in.lanes.Limit(); held > limit/2 {
		t.Errorf("%d bytes of memory of %d are held for the dead one", held, limit)
	}
	for range 50 {
		if status, a := in.send("alive/events?ack=delivered", "application/json", body); status != 200 {
			t.Fatalf("%d %+v", status, a)
		}
	}
	spoolReady := false
	for _, d := range in.Dependencies() {
		spoolReady = spoolReady || d.Name == "spool" && !d.OK && strings.Contains(d.Detail, "stream dead is full")
	}
	if !spoolReady {
		t.Errorf("readiness does not name it: %+v", in.Dependencies())
	}
	node.Judge(nil)
	in.delivered()
	in.until("nothing is left in the spool", func() bool { return (*in.streams.Load())["dead"].spool.Stats().Frames == 0 })
	in.end()
}
