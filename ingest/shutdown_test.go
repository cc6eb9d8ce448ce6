package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	sdk "github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// What outlives the deadline of a stop ends with it over QUIC, too, where no request over TCP holds the stop up until then.
func TestP02ShutdownDropsWhatOutlivesTheDeadlineOverQUIC(t *testing.T) {
	for name, send := range map[string]func(t *testing.T, at string){
		"session": func(t *testing.T, at string) {
			c, err := sdk.New(sdk.Config{Address: at, Stream: "s", Framing: session.Opaque, TLS: &tls.Config{InsecureSkipVerify: true}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Send(t.Context(), []byte("1")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				gone, cancel := context.WithCancel(context.Background())
				cancel()
				c.Close(gone) // an error: nothing was acknowledged
			})
		},
		"request": func(t *testing.T, at string) {
			c := clientH3(t)
			go func() { // it has no answer, or one that says nothing was taken
				if resp, err := c.Post("https://"+at+events, "application/x-ndjson", strings.NewReader("1\n")); err == nil {
					resp.Body.Close()
					if resp.StatusCode == http.StatusOK {
						t.Error("a dropped request got 200")
					}
				}
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan error, 1)
			g, at := serveQUIC(t, Config{}, &fakeStream{accept: func(ctx context.Context, _ *event.Batch) error {
				close(entered)
				<-ctx.Done() // nobody leaves but by the end of its context
				left <- ctx.Err()
				return ctx.Err()
			}})
			send(t, at)
			<-entered
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // so that TCP, where nothing is open, is through before
			defer cancel()
			if err := g.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown: %v", err)
			}
			if how := <-left; how != context.Canceled { // at its own deadline
				t.Errorf("a batch was worked on although the stop was over: %v", how)
			}
			err := <-g.ran
			g.ran <- err
			g.nothing()
		})
	}
}
