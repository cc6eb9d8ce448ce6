package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// TestP02AStopDoesNotWaitForGuests: guests that compute for a request and for a session, and may do so for much longer than
// drain.timeout, are stopped with it, and no event is blamed for that.
func TestP02AStopDoesNotWaitForGuests(t *testing.T) {
	wasm, err := os.ReadFile("../../plugins/testdata/scripted.wasm")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMAXPROCS", "2") // with one, who computes keeps the timers waiting
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "plugins.deadline=10s", "--set", "drain.timeout=300ms")...)
	p.steer("PUT", "/v1/plugins/scripted", wasm)
	if status, answer := p.steer("POST", "/v1/streams/web/plugins", []byte(`{"plugin":"scripted","on_error":"pass"}`)); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	answered := make(chan int)
	go func() {
		status := 0
		resp, err := http.Post(p.http+"/v1/streams/web/events", "text/plain", strings.NewReader("lby request\nw\n"))
		if err == nil {
			status = resp.StatusCode
			resp.Body.Close()
		}
		answered <- status
	}()
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), Stream: "web", Framing: session.Opaque, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Send(t.Context(), []byte("lin session"), []byte("w"))
	if err != nil {
		t.Fatal(err)
	}
	p.until("both compute", func() bool {
		return strings.Contains(p.log.String(), "lby request") && strings.Contains(p.log.String(), "lin session")
	})
	p.terminate()
	if status := <-answered; status == 200 {
		t.Error("the request is answered with success")
	}
	select {
	case <-b.Done():
		t.Error("the batch of the session has an outcome")
	default:
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	c.Close(gone) // an error: nothing is acknowledged
	if log := p.log.String(); strings.Contains(log, "plugin failed") || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("a guest ended at its own deadline, or the stop did not:\n%s", log)
	}
}
