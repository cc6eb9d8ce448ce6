package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// TestP02AStopDoesNotWaitForGuests: guests that compute, and may do so for much longer than drain.timeout, are stopped with it, and no
// event is blamed for that: for a request, for a session, and for both. On one processor, too; there streams are served meanwhile.
func TestP02AStopDoesNotWaitForGuests(t *testing.T) {
	wasm, err := os.ReadFile("../../plugins/testdata/scripted.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, processors := range []string{"", "1"} {
		for _, of := range [][]string{{"request"}, {"session"}, {"request", "session"}} {
			t.Run(fmt.Sprint(of, processors), func(t *testing.T) {
				if processors != "" {
					t.Setenv("GOMAXPROCS", processors)
				}
				stopBesideGuests(t, wasm, of)
			})
		}
	}
}

// stopBesideGuests has a guest compute for each of what of names, each in a stream of its own since a stream has one instance a
// processor, and stops the gateway.
func stopBesideGuests(t *testing.T, wasm []byte, of []string) {
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "plugins.deadline=10s", "--set", "drain.timeout=300ms")...)
	p.steer("PUT", "/v1/plugins/scripted", wasm)
	for _, name := range of {
		if status, answer := p.steer("POST", "/v1/streams/"+name+"/plugins", []byte(`{"plugin":"scripted","on_error":"pass"}`)); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	ended := func() {}
	for _, name := range of {
		if name == "session" {
			defer p.computeInSession(name)()
		} else {
			ended = p.computeInRequest(name)
		}
	}
	p.until("all compute", func() bool { return strings.Count(p.log.String(), `"msg":"lby guest"`) == len(of) })
	for range 3 {
		if status, answer := p.lines("quiet", "a\n"); status != 200 {
			t.Errorf("while guests compute, a stream without one answers %d %s", status, answer)
		}
	}
	if code := p.terminate(); code != 1 {
		t.Errorf("exit %d after what was computed was cut off", code)
	}
	ended()
	if log := p.log.String(); strings.Contains(log, "plugin failed") || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("a guest ended at its own deadline, or the stop did not:\n%s", log)
	}
}

// computeInRequest has a guest compute for a request. ended checks that it is not answered with success.
func (p *process) computeInRequest(stream string) (ended func()) {
	answered := make(chan int, 1)
	go func() {
		status := 0
		resp, err := http.Post(p.http+"/v1/streams/"+stream+"/events", "text/plain", strings.NewReader("lby guest\nw\n"))
		if err == nil {
			status = resp.StatusCode
			resp.Body.Close()
		}
		answered <- status
	}()
	return func() {
		if status := <-answered; status == http.StatusOK {
			p.t.Error("the request is answered with success")
		}
	}
}

// computeInSession has a guest compute for a session. ended checks that its batch has no outcome.
func (p *process) computeInSession(stream string) (ended func()) {
	p.t.Helper()
	c, err := client.New(client.Config{Address: strings.TrimPrefix(p.quicURL(), "https://"), Stream: stream, Framing: session.Opaque, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := c.Send(p.t.Context(), []byte("lby guest"), []byte("w"))
	if err != nil {
		p.t.Fatal(err)
	}
	return func() {
		select {
		case <-b.Done():
			p.t.Error("the batch of the session has an outcome")
		default:
		}
		gone, cancel := context.WithCancel(p.t.Context())
		cancel()
		c.Close(gone) // an error: nothing is acknowledged
	}
}
