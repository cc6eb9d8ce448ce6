package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// awayDocs is a control store that answers nothing.
type awayDocs struct{ tableDocs }

var errAway = errors.New("the control store is away")

func (awayDocs) Read(context.Context, string) (control.Document, error) {
	return control.Document{}, errAway
}
func (awayDocs) Write(context.Context, string, []byte, uint64) (uint64, error) { return 0, errAway }

// storeOf puts another control store in place of that of a stream's table.
func (in *instance) storeOf(stream string, docs func(tableDocs) tableDocs) {
	a := (*in.streams.Load())[stream].adaptive
	a.turn.Lock()
	defer a.turn.Unlock()
	a.stored.docs = docs(a.stored.docs)
}

// With the control store away a stream without order goes on changing its table and stores it later; one with an order takes
// events and changes nothing until it is back.
func TestTableWithoutItsStore(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{
		"none":   adaptiveStream(func(s *config.Stream) { s.Ordering = "none" }),
		"source": adaptiveStream(func(*config.Stream) {}),
	}
	in := start(t, cfg)
	defer in.end()
	for name := range cfg.Streams {
		in.storeOf(name, func(d tableDocs) tableDocs { return awayDocs{d} })
	}
	loose, ordered := in.flood("none"), in.flood("source")
	in.untilTable("none", "split", isSplit)
	if table := in.table("source"); len(table.Splits) != 0 || table.Version != 1 {
		t.Errorf("%+v", table)
	}
	for name := range cfg.Streams {
		in.storeOf(name, func(d tableDocs) tableDocs { return d.(awayDocs).tableDocs })
	}
	in.untilTable("source", "split", isSplit)
	loose.end()
	ordered.end()
	ordered.compare(ordered.stored(), true)
	in.untilTable("none", "stored", func(table shownTable) bool {
		doc, err := (*in.streams.Load())["none"].adaptive.stored.docs.Read(t.Context(), "none")
		var stored struct{ Version uint64 }
		return err == nil && json.Unmarshal(doc.Value, &stored) == nil && stored.Version == table.Version && table.Version > 1
	})
}

// What could not be stored is stored when the control store is back, also while no event comes.
func TestAnIdleTableIsStoredLater(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"none": {Ordering: "none"}}
	in := start(t, cfg)
	defer in.end()
	in.storeOf("none", func(d tableDocs) tableDocs { return awayDocs{d} })
	s := (*in.streams.Load())["none"]
	if err := s.classes(t.Context(), &event.Batch{Class: event.ClassStrict}); err != nil {
		t.Fatal(err)
	}
	in.storeOf("none", func(d tableDocs) tableDocs { return d.(awayDocs).tableDocs })
	in.untilTable("none", "stored", func(table shownTable) bool {
		doc, err := in.Gateway.store.Tables.Read(t.Context(), "none")
		var stored struct {
			Version uint64
			Classed bool
		}
		return err == nil && json.Unmarshal(doc.Value, &stored) == nil && stored.Classed && stored.Version == table.Version
	})
}

// A table that a newer version has written is refused by that name, and the stream with it.
func TestTableOfANewerVersionIsRefusedAtStart(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	in.want(200, `"accepted":1`, "web", `{}`)
	docs := in.Gateway.store.Tables
	doc, err := docs.Read(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := docs.Write(t.Context(), "web", []byte(`{"format":2,"regions":["a"]}`), doc.Revision); err != nil {
		t.Fatal(err)
	}
	in.end()
	in = start(t, cfg)
	defer in.end()
	in.want(500, "its format is 2, of a newer version of Headgate", "web", `{}`)
}
