package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/plugins"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// stream is a stream that takes events. Its definition and its chain are replaced whole while it runs.
type stream struct {
	name        string
	current     atomic.Pointer[definition]
	chain       atomic.Pointer[link]
	changing    sync.Mutex // one change of definition or chain at a time; taken before Gateway.steering
	partitioner *partitioner.Partitioner
	adaptive    *adaptive // nil for a dead letter
	forwarder   *forward.Forwarder
	delivery    delivery
	deadLetter  *deadLetter               // nil for a dead letter
	spool       *spool.Spool              // likewise
	keys        atomic.Pointer[keyRate]   // nil: keys have no rate
	limits      atomic.Pointer[keyLimits] // nil: no key brings more than a partition takes
	ids         *window.Set
	idLog       *journal.Journal // keeps it; nil for a dead letter, whose events' ids are not looked up
	secret      window.Secret    // of the identities in it
	done        chan struct{}    // closed when the forwarder has ended
}

// definition is a version of what the stream's owner asked for, made ready for use.
type definition struct {
	config   config.Stream
	revision uint64
	managed  string // "file" or "api"
	settings *ingest.Settings
	key      builtin.Key
	id       builtin.ID
	filter   *builtin.Filter // nil: there is none
}

// link is the stream's chain of plugins: none, running, or not running for a reason.
type link struct {
	activations []activation
	chain       *plugins.Chain
	err         error
	idle        error // why what is tried does not run; nil: it does, or there is nothing
}

// Settings returns what ingest needs to know of the stream's requests.
func (s *stream) Settings() *ingest.Settings { return s.current.Load().settings }

// define makes a definition ready; its config has defaults and no problems.
func define(cfg config.Stream, revision uint64, managed string) (*definition, error) {
	pointer, err := jsonscan.ParsePointer(cfg.Key.JSON)
	if err != nil {
		return nil, fmt.Errorf("key.json: %w", err)
	}
	watch := make([]jsonscan.Pointer, event.FieldKey+1)
	watch[event.FieldKey] = pointer
	id := cfg.ID.Extractor()
	if id.JSON != "" {
		if pointer, err = jsonscan.ParsePointer(id.JSON); err != nil {
			return nil, fmt.Errorf("id.json: %w", err)
		}
		watch = append(watch, pointer) // event.FieldID
	}
	def, _ := event.ParseLevel(cfg.Ack.Default)
	low, _ := event.ParseLevel(cfg.Ack.Min)
	high, _ := event.ParseLevel(cfg.Ack.Max)
	key := builtin.Key{JSON: cfg.Key.JSON, Header: strings.ToLower(cfg.Key.Header), CE: cfg.Key.CE, Required: cfg.Key.Required}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	d := &definition{
		config: cfg, revision: revision, managed: managed, key: key, id: id,
		settings: &ingest.Settings{
			Limits: ingest.Limits{
				Body: int64(cfg.Limits.Body), Inflated: int64(cfg.Limits.Inflated), Ratio: cfg.Limits.Ratio,
				Event: int64(cfg.Limits.Event), Events: cfg.Limits.Events, Depth: cfg.Limits.Depth,
			},
			Headers:    slices.DeleteFunc([]string{key.Header, id.Header}, func(name string) bool { return name == "" }),
			Identified: id.JSON != "" || id.Header != "",
			MediaTypes: cfg.Types, PassUTF8: cfg.UTF8 == "pass", Ordering: cfg.Ordering,
			AckDefault: def, AckMin: low, AckMax: high, Watch: watch,
		},
	}
	return d, settings.At("filters", d.addFilter())
}

func (s *stream) inTrouble() bool {
	code, _ := s.forwarder.Trouble()
	return code != ""
}
