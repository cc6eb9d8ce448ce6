package ingest

import (
	"context"
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Gate is where streams are found. It is called concurrently, before a request's first byte of the body (and again behind
// it when what was found got lost), and must not block on I/O.
type Gate interface {
	// Open returns the stream called name. Where it may be made on first use, its Settings say that it is unmade, and its
	// first Accept makes it. The error is an *event.Problem: bad_stream_name, unknown_stream, draining, spool_full, ...
	// Only names of streams that are made become labels of metrics.
	Open(name string) (Stream, error)
}

// Stream takes the batches of one stream. It is called concurrently.
type Stream interface {
	// Settings returns the settings in force now. They do not change once returned.
	Settings() *Settings
	// Accept takes the events of b whose verdict is Keep and returns when they have come as far as b.Ack asks; what
	// became of each is its verdict. It returns an error, an *event.Problem, when the request as a whole failed.
	// b and everything it refers to stay the caller's: what is needed after the return must be copied before. When the
	// outcome is still unknown and b.Late is set, that is called later.
	Accept(ctx context.Context, b *event.Batch) error
}

// Settings are what a stream wants of its requests; zero values mean the defaults. They must not be copied or changed
// once a stream returns them: scanners made for them are pooled inside.
type Settings struct {
	Limits     Limits
	MediaTypes []string // types whose body is one opaque event, in lower case; nil: DefaultMediaTypes
	PassUTF8   bool     // store JSON and text that is not UTF-8 as it came instead of refusing it

	Unmade bool // there is no such stream yet, see Gate.Open

	Identified bool // events bring ids, by which they are known whatever session or request they come in

	AckDefault, AckMin, AckMax event.Level // defaults: durable, accepted, delivered

	Ordering string // strict, source or none: what order the events keep; default source

	// Watch[i] is the JSON pointer whose value the syntax check notes in Event.Fields[i].
	Watch []jsonscan.Pointer

	// Sieve decides on each event that has passed the checks; nil: all of them go on.
	Sieve Sieve

	// Headers are request headers, in lower case, that say something of the events, besides those that every stream reads.
	Headers []string

	scanners sync.Pool // of *jsonscan.Scanner
}

// Sieve drops and refuses events by what is in them. It is called concurrently.
type Sieve interface {
	// Sift may change the verdict of event i of b; fields[j] is where the value at Settings.Watch[j] stands in it. It keeps
	// nothing that it is given.
	Sift(b *event.Batch, i int, fields []event.Span)
}

// Limits bound one request; a zero limit means its default.
type Limits struct {
	Body     int64 // bytes of the body as sent; 16 MiB
	Inflated int64 // bytes of the body after its codings; 64 MiB
	Ratio    int   // inflated to sent bytes, once 1 MiB is inflated; 200
	Event    int64 // bytes of one event; 1 MiB
	Events   int   // events of one request; 100,000
	Depth    int   // nested arrays and objects of JSON; 64
}

// DefaultMediaTypes returns the types whose body is one opaque event where a stream names none.
func DefaultMediaTypes() []string {
	return []string{"application/octet-stream", "application/x-protobuf", "application/protobuf", "application/avro",
		"application/msgpack", "application/x-msgpack", "application/cbor"}
}

// ratioFree is how many bytes a body may inflate to whatever its ratio.
const ratioFree = 1 << 20

func (s *Settings) limits() Limits {
	l := s.Limits
	orDefault(&l.Body, 16<<20)
	orDefault(&l.Inflated, 64<<20)
	orDefault(&l.Ratio, 200)
	orDefault(&l.Event, 1<<20)
	orDefault(&l.Events, 100_000)
	orDefault(&l.Depth, 64)
	return l
}

// inflated is how large a body of sent bytes may become.
func (l *Limits) inflated(sent int) int64 {
	return min(l.Inflated, max(ratioFree, int64(sent)*int64(l.Ratio)))
}

// levels returns the bounds of what a request may ask for, and what it gets when it does not ask.
func (s *Settings) levels() (lowest, usual, highest event.Level) {
	lowest, usual, highest = s.AckMin, s.AckDefault, s.AckMax
	orDefault(&lowest, event.Accepted)
	orDefault(&usual, event.Durable)
	orDefault(&highest, event.Delivered)
	return lowest, usual, highest
}

func (s *Settings) opaque(mediaType []byte) bool {
	types := s.MediaTypes
	if types == nil {
		types = defaultMediaTypes
	}
	for _, t := range types {
		if t == string(mediaType) {
			return true
		}
	}
	return false
}

var defaultMediaTypes = DefaultMediaTypes() // read only

// takeScanner returns a scanner that watches what s says; giveScanner takes it back.
func (s *Settings) takeScanner() *jsonscan.Scanner {
	scanner, ok := s.scanners.Get().(*jsonscan.Scanner)
	if !ok {
		scanner = jsonscan.New(s.limits().Depth, s.Watch)
		scanner.PassUTF8 = s.PassUTF8
	}
	return scanner
}

func (s *Settings) giveScanner(scanner *jsonscan.Scanner) { s.scanners.Put(scanner) }

func orDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
