package jetstream

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate-io/headgate/event"
)

// token is what a gateway may be called, so that it is one token of a subject; streamToken likewise, or two for the
// dead letter of a stream. A stream's own subjects have two tokens behind its name, so that the two never overlap.
var (
	token       = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	streamToken = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}(` + regexp.QuoteMeta(event.DeadLetterSuffix) + `)?$`)
)

// StreamName returns the name of the JetStream stream that holds a stream: HEADGATE_web, HEADGATE_web_DEADLETTER.
func StreamName(stream string) string {
	if of, ok := strings.CutSuffix(stream, event.DeadLetterSuffix); ok {
		return "HEADGATE_" + of + "_DEADLETTER"
	}
	return "HEADGATE_" + stream
}

// streamOf is the inverse of storeName: the stream, and ok for a name that storeName returns.
func streamOf(store string) (stream string, ok bool) {
	stream, ok = strings.CutPrefix(store, "HEADGATE_")
	if cut := shareSuffix.FindStringIndex(stream); cut != nil {
		stream = stream[:cut[0]]
	}
	if of, dead := strings.CutSuffix(stream, "_DEADLETTER"); dead {
		stream = of + event.DeadLetterSuffix
	}
	return stream, ok
}

// StreamOf returns the stream that a JetStream stream holds, or its own name when it holds none.
func StreamOf(store string) string {
	if stream, ok := streamOf(store); ok {
		return stream
	}
	return store
}

// shareSuffix cannot end a stream's name, which has no capital letters.
var shareSuffix = regexp.MustCompile(`_K[0-9]+$`)

// storeName returns the name of the JetStream stream that holds a stream's k-th share of partitions: HEADGATE_web, and
// behind it HEADGATE_web_K1, HEADGATE_web_K2.
func storeName(stream string, k int) string {
	if k == 0 {
		return StreamName(stream)
	}
	return fmt.Sprintf("%s_K%d", StreamName(stream), k)
}

// subjects returns those of the k-th share: of a stream that is not spread all, else those of every partition of which
// the remainder by spread is k.
func subjects(cfg Config, k int) (all []string) {
	if cfg.Streams == 1 {
		return []string{fmt.Sprintf("headgate.%s.*.*", cfg.Stream)}
	}
	for p := k; p < cfg.Partitions; p += cfg.Streams {
		all = append(all, fmt.Sprintf("headgate.%s.%d.*", cfg.Stream, p))
	}
	return all
}

// Subject returns the subject of a lane.
func Subject(stream string, partition int32, gateway string) string {
	return fmt.Sprintf("headgate.%s.%d.%s", stream, partition, gateway)
}
