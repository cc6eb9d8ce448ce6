package forward

import (
	"context"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Backend is where the runs of one stream go. Different lanes call it concurrently; one lane never has more
// than one call in flight. Both methods return soon after ctx has ended.
type Backend interface {
	// Resume returns the number of the last event that this gateway's lane has stored in the partition, 0 for
	// none. A lane calls it, until it succeeds once, before its first Send; every error means "try again".
	Resume(ctx context.Context, partition int32) (last uint64, err error)

	// Send stores a run and returns nil when it is confirmed at the backend's declared level. A nil answer is the
	// only confirmation: after any error the lane sends the same run, byte for byte, again, and the backend must
	// recognise what it already has; so a Send of events at or below the stored number is confirmed, not stored
	// twice. The exception is a *SendError with Refused: the backend stored nothing of the run and never will. The
	// lane then sends the run's events in smaller runs, down to single ones, so that only those refused alone are
	// given up (see DeadLetter); it goes on behind them, so that First may leave a gap. The run and its bytes are lent until Send
	// returns.
	Send(ctx context.Context, run *Run) error
}

// Run is consecutive frames of one lane, concatenated unchanged: what one Send carries.
type Run struct {
	Stream       string
	Partition    int32
	First, Last  uint64 // numbers of its first and last event in the lane, from 1, no gaps: Events = Last-First+1
	Events       int
	Frames       int
	TableVersion uint64 // of the newest frame
	Again        bool   // an earlier process may have sent its events, or some of them

	ContentType     string // framing of the events; the frames of a run share it
	ContentEncoding string // "" when the frames are not compressed
	ID              string // <gateway>.<stream>.<partition>.<first>+<frames>; -<last> instead for a piece of a frame
	Payload         []byte
}

// SendError is how a backend says more than "try again". Any other error of Send is retried.
type SendError struct {
	Refused bool          // the content, or its size, is refused for good; only a smaller run can help
	After   time.Duration // not before this long from now; 0 leaves it to the lane's back-off
	Code    event.Code    // what producers are told; "" is backend_unavailable, or backend_refused when refused
	Reason  string        // short, from a fixed set: label of headgate_delivery_errors_total; "" is "error"
	Err     error
}

// Error returns the code, where given, and the cause.
func (e *SendError) Error() string {
	parts := make([]string, 0, 3)
	if e.Refused {
		parts = append(parts, "refused")
	}
	if e.Code != "" {
		parts = append(parts, string(e.Code))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
