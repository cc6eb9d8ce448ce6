package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/forward"
)

// stop ends the data path from the top: no new work, finish requests, deliver what the lanes hold; the admin API last.
func (g *Gateway) stop() {
	began := time.Now()
	g.log.Info("draining", "at_most", time.Duration(g.cfg.Drain.Timeout).String())
	g.stopping.Store(true)
	g.accepting.Store(false)
	g.health.set("accepting", "draining", time.Time{})
	deadline, cancel := context.WithTimeout(context.Background(), time.Duration(g.cfg.Drain.Timeout))
	defer cancel()
	defer context.AfterFunc(deadline, g.giveUp)()

	g.replays.close()
	if err := g.ingest.Shutdown(deadline); err != nil {
		g.failures.add(fmt.Errorf("requests were cut off: %w", err))
	}
	g.drain()
	if lost := g.undelivered(); len(lost) > 0 {
		g.log.Error("drain.timeout has ended before everything was delivered", "undelivered", lost)
	}
	if kept := g.spooled(); len(kept) > 0 {
		g.log.Warn("events that were not delivered are in the spool, and go out after the next start", "spooled", kept)
	}
	// The admin API gets a moment of its own: it must still answer when draining took all the time there was.
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := g.admin.Shutdown(last); err != nil {
		g.log.Warn("admin requests were cut off", "error", err)
	}
	g.log.Info("stopped", "after", time.Since(began).Round(time.Millisecond).String())
}

// drain delivers what the streams' lanes hold, and then what they set aside on the way.
func (g *Gateway) drain() {
	streams := *g.streams.Load()
	for name, s := range streams {
		if _, dead := deadLetterOf(name); !dead {
			s.forwarder.Close()
		}
	}
	for name, s := range streams {
		if _, dead := deadLetterOf(name); !dead {
			<-s.done
		}
	}
	g.burying.Lock()
	g.buried = true
	g.burying.Unlock()
	for _, s := range *g.streams.Load() {
		s.forwarder.Close()
	}
	g.running.Wait()
}

// undelivered returns how many events each stream has given up on.
func (g *Gateway) undelivered() map[string]int {
	all := map[string]int{}
	for _, err := range g.failures.list() {
		if lost, ok := errors.AsType[*forward.UndeliveredError](err); ok && lost.Events > 0 {
			all[lost.Stream] = lost.Events
		}
	}
	return all
}

// spooled returns how many events each stream's spool has.
func (g *Gateway) spooled() map[string]int {
	all := map[string]int{}
	for name, s := range *g.streams.Load() {
		if s.spool == nil {
			continue
		}
		if n := s.spool.Stats().Events; n > 0 {
			all[name] = n
		}
	}
	return all
}

// close releases what open took, in the opposite order; what was not reached is nil.
func (g *Gateway) close() {
	if g.giveUp != nil {
		g.giveUp()
	}
	for _, s := range *g.streams.Load() {
		if c := s.chain.Load().chain; c != nil {
			g.failures.add(c.Retire())
		}
	}
	if g.stores != nil {
		g.stores.close()
	}
	if g.folder != nil {
		g.folder.Close()
	}
}
