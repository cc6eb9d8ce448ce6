package jetstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// Error codes of JetStream that its client library has no names for, and one that it has.
const (
	accountExceeded       js.ErrorCode = 10002
	insufficientResources js.ErrorCode = 10023
	insufficientStorage   js.ErrorCode = 10047
	messageTooLarge       js.ErrorCode = 10054
	wrongLastSequence     js.ErrorCode = 10071 // the chain check: decided by what the stream holds
	storeFailed           js.ErrorCode = 10077 // the cause is in the text only
	headerTooLarge        js.ErrorCode = 10097
	conditionalInFlight   js.ErrorCode = 10164 // another checked publish is on its way through the replicas
)

// fullWait is how long a lane rests when the stream stays full: space comes from purging, which is no matter of
// milliseconds. At first it rests for less, since the keeper may only have to cut the shares anew.
const (
	fullWait      = time.Second
	firstFullWait = 25 * time.Millisecond

	// recordOverhead is more than the server's file store adds to a message.
	recordOverhead = 64
)

var errDuplicateID = errors.New("the id was used within the last two minutes, its message is not at the lane's end")

// ErrFull is returned by Open when the server has not enough space left for the stream's MaxBytes.
var ErrFull = errors.New("not enough storage for the stream")

func apiError(err error) *js.APIError {
	var coded *js.APIError
	errors.As(err, &coded)
	return coded
}

func isCode(err error, code js.ErrorCode) bool {
	e := apiError(err)
	return e != nil && e.ErrorCode == code
}

func isFull(err error) bool {
	switch e := apiError(err); {
	case e == nil:
		return false
	case e.ErrorCode == storeFailed:
		return strings.Contains(e.Description, "maximum bytes exceeded")
	default:
		return e.ErrorCode == accountExceeded || e.ErrorCode == insufficientResources || e.ErrorCode == insufficientStorage
	}
}

func isTooLarge(err error) bool {
	switch e := apiError(err); {
	case e == nil:
		return errors.Is(err, nats.ErrMaxPayload)
	case e.ErrorCode == storeFailed:
		return strings.Contains(e.Description, "message too large")
	default:
		return e.ErrorCode == messageTooLarge || e.ErrorCode == headerTooLarge
	}
}

// definite reports whether a failed publish has certainly stored nothing.
func definite(err error) bool { return isFull(err) || isTooLarge(err) }

// sendError says what the lane needs to know of err; nil stays nil, and so does the end of the caller's context.
func sendError(err error) error {
	var sealed *SealedError
	var chain *ChainError
	var already *forward.SendError
	switch e := (&forward.SendError{Code: event.BackendUnavailable, Err: err}); {
	case err == nil:
		return nil
	case errors.As(err, &already), errors.Is(err, context.Canceled):
		return err
	case isTooLarge(err):
		e.Refused, e.Code, e.Reason = true, event.EventTooLarge, "too_large"
		return e
	case isFull(err):
		e.Code, e.Reason, e.After = event.BackendFull, "full", fullWait
		return e
	case errors.As(err, &chain):
		e.Reason, e.After = "second_writer", fullWait
		return e
	case errors.As(err, &sealed):
		e.Reason = "sealed"
		return e
	default:
		e.Reason = reason(err)
		return e
	}
}

func reason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return "timeout"
	case isCode(err, conditionalInFlight), isCode(err, wrongLastSequence), errors.Is(err, errDuplicateID), errors.Is(err, errGrown):
		return "chain"
	case errors.Is(err, js.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders), isCode(err, js.JSErrCodeStreamNotFound):
		return "no_stream"
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionDraining):
		return "connection"
	}
	return "error"
}
