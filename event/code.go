package event

import (
	"errors"
	"fmt"
	"time"
)

// Code is the stable, documented word for one way a request or an event can fail. internal/problem has the
// table from code to status and whether a retry can help.
type Code string

// Problem is an error that a user sees: it ends a request. Members that do not apply are left zero.
type Problem struct {
	Code   Code
	Detail string // one sentence that says what to do
	Stored Stored // what is known of the request's events
	// Scope, Limit and Observed describe a limit that was exceeded: Scope is body, inflated, event, count, memory or lanes.
	Scope           string
	Limit, Observed int64
	RetryAfter      time.Duration // it can work by then; 0: not known
}

// Error returns code and detail.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// Problemf makes a Problem with a formatted detail.
func Problemf(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Detail is the sentence of a Problem without its code, and the text of any other error.
func Detail(err error) string {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Detail
	}
	return err.Error()
}

// Codes of events and requests that are the client's to mend.
const (
	MalformedJSON        Code = "malformed_json"
	TrailingData         Code = "trailing_data"
	InvalidUTF8          Code = "invalid_utf8"
	AmbiguousContentType Code = "ambiguous_content_type"
	BadFraming           Code = "bad_framing"
	AmbiguousFraming     Code = "ambiguous_framing"
	IncompleteBody       Code = "incomplete_body"
	BadGzip              Code = "bad_gzip"
	BadZstd              Code = "bad_zstd"
	BadDeflate           Code = "bad_deflate"
	BadBr                Code = "bad_br"
	BadSnappy            Code = "bad_snappy"
	ZstdWindow           Code = "zstd_window"
	BadParameter         Code = "bad_parameter"
	LooserOrdering       Code = "looser_ordering"
	Unauthorized         Code = "unauthorized"
	Forbidden            Code = "forbidden"
	NotFound             Code = "not_found"
	UnknownStream        Code = "unknown_stream"
	BadStreamName        Code = "bad_stream_name"
	MethodNotAllowed     Code = "method_not_allowed"
	RequestTimeout       Code = "request_timeout"
	IdempotencyInFlight  Code = "idempotency_in_flight"
	BodyTooLarge         Code = "body_too_large"
	InflatedTooLarge     Code = "inflated_too_large"
	TooManyEvents        Code = "too_many_events"
	EventTooLarge        Code = "event_too_large"
	RequestTooLarge      Code = "request_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	UnsupportedCoding    Code = "unsupported_coding"
	TooDeep              Code = "too_deep"
	DuplicateName        Code = "duplicate_name"
	KeyRequired          Code = "key_required"
	KeyNotScalar         Code = "key_not_scalar"
	KeyTooLong           Code = "key_too_long"
	IDNotScalar          Code = "id_not_scalar"
	IDTooLong            Code = "id_too_long"
	PluginRejected       Code = "plugin_rejected"
	PluginFailed         Code = "plugin_failed"
	FilterRejected       Code = "filter_rejected"
	InvalidCloudEvent    Code = "invalid_cloudevent"
	IdempotencyMismatch  Code = "idempotency_mismatch"
	StrictRejected       Code = "strict_rejected"
	EarlyData            Code = "early_data"
	CallerRate           Code = "caller_rate"
	KeyRate              Code = "key_rate"
	HeadersTooLarge      Code = "headers_too_large"
	NotReadable          Code = "not_readable"
	UnknownPlugin        Code = "unknown_plugin"
	PluginInUse          Code = "plugin_in_use"
	NothingToDo          Code = "nothing_to_do"
	ManagedByFile        Code = "managed_by_file"
	PartitionsFixed      Code = "partitions_fixed"
	EtagMismatch         Code = "etag_mismatch"
	PluginRefused        Code = "plugin_refused"
	BadConfiguration     Code = "bad_configuration"
	BackendRefused       Code = "backend_refused"
	SameIDFailed         Code = "same_id_failed"
	UnknownLetter        Code = "unknown_letter"
	ReplayRunning        Code = "replay_running"
)

// Codes of failures that are ours: a retry can help, and the answer says what is stored.
const (
	Internal           Code = "internal"
	Overloaded         Code = "overloaded"
	Starting           Code = "starting"
	Draining           Code = "draining"
	SpoolFull          Code = "spool_full"
	BackendFull        Code = "backend_full"
	BackendUnavailable Code = "backend_unavailable"
	AckTimeout         Code = "ack_timeout"
	PluginUnavailable  Code = "plugin_unavailable"
)
