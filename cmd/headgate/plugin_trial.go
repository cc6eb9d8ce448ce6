package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/plugins"
)

// trial runs one module over sample events.
type trial struct {
	out, stderr io.Writer
	json        bool
	syntax      event.Syntax
	module      *plugins.Module
	chain       *plugins.Chain
	total       trialSummary
	expect      *expectations // nil for none
	untested    bool          // the module's own tests are not run
	metrics     *prometheus.Registry
}

// enoughEvents are as many as it takes behind the first batch to say what one costs.
const enoughEvents = 1000

// trialBatch is how many events a batch has, so many as a guest gets in one call.
const trialBatch = 256

func syntaxOf(mediaType string) event.Syntax {
	switch name, _, _ := strings.Cut(mediaType, ";"); name {
	case "text/plain":
		return event.Text
	case "application/vnd.headgate.events", "application/octet-stream":
		return event.Opaque
	}
	return event.JSON
}

// load admits the module as an upload would and makes it ready.
func (t *trial) load(ctx context.Context, file string, wasm, config []byte) (err error) {
	log := slog.New(slog.NewTextHandler(t.stderr, nil))
	t.metrics = prometheus.NewRegistry()
	host, err := plugins.New(plugins.Config{Instances: 1, Patient: true, Untested: t.untested}, log, t.metrics)
	if err != nil {
		return err
	}
	report, err := host.Admit(ctx, wasm)
	if err != nil {
		return err
	}
	if !report.OK() {
		return errors.New("the module is refused: " + report.Failed())
	}
	if t.module, err = host.Load(ctx, wasm); err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	t.chain, err = host.NewChain(ctx, []plugins.Step{{
		Name: name, Module: t.module, Config: config, OnError: plugins.Policy{Action: plugins.Reject}, // so that each failure is named
	}}, plugins.Rules{})
	if err != nil {
		return errors.Join(err, t.module.Close())
	}
	return nil
}

func (t *trial) close() {
	// The process ends with it; what closing guests can go wrong about has no consequence.
	_ = t.chain.Retire()
	_ = t.module.Close()
}

// run processes the events and prints the summary.
func (t *trial) run(ctx context.Context, source batches) error {
	var spent time.Duration
	counted := 0
	scanner := jsonscan.New(64, nil)
	for {
		b, err := source.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return usageError(err)
		}
		batch := t.batch(b, scanner)
		began := time.Now()
		if err := t.chain.Process(ctx, batch); err != nil {
			return err
		}
		if t.total.Events > 0 { // the first batch brings code and memory up
			spent += time.Since(began)
			counted += len(batch.Events)
		}
		if err := t.print(b, batch); err != nil {
			return err
		}
	}
	if counted >= enoughEvents {
		t.total.Cost = float64(spent.Nanoseconds() / int64(counted))
	}
	return t.end()
}

// finish says whether all was as expected.
func (t *trial) finish() error {
	if t.expect == nil {
		return nil
	}
	said, err := t.expect.finish()
	if err == nil && !t.json {
		_, err = fmt.Fprintln(t.out, said)
	}
	return err
}

// batch makes of a piece of the file what the gateway would make of a request.
func (t *trial) batch(b *batch, scanner *jsonscan.Scanner) *event.Batch {
	eb := &event.Batch{Stream: "test", Syntax: t.syntax, Body: b.body, Arrived: time.Now().UnixNano()}
	for i := range b.starts {
		eb.Events = append(eb.Events, event.Event{Data: b.event(i), Offset: b.starts[i], Slot: event.NoSlot, Child: event.NoSlot})
		if t.syntax != event.JSON {
			continue
		}
		if f := scanner.Check(eb.Events[i].Data); f.Code != "" {
			eb.RejectAt(i, f.Offset, f.Code, f.Detail)
		}
	}
	return eb
}
