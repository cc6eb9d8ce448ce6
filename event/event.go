// Package event is the domain: what an event and a batch are, and what can become of them.
package event

// Event is one unit of user data. Data and Key are views: into the batch's buffer as it came from the
// client, or into the batch's arena for what was made on the way (unescaped keys, replaced values).
// An event's position in Batch.Events is its index in the request.
type Event struct {
	Data []byte // the event as it came, byte for byte, without line end or length prefix
	Key  []byte // the partition key; meaningful only when HasKey (a null key is no key, an empty key is one)
	ID   []byte // user's id, nil for none
	// Attrs are CloudEvents attributes other than the id (names as in CloudEvents 1.0); nil for most events.
	Attrs []Attr
	// Fields are the spans in Data of the values at the stream's watched JSON pointers (Batch.Watch), found
	// by the syntax check in the same pass; the zero Span means absent.
	Fields [MaxFields]Span

	Time   int64  // unix nanoseconds when the event brought its own time, else 0: the batch's arrival
	Hash   uint64 // keyed hash of the key, set by the partitioner; the upper half of its 128 bits
	Offset int    // byte offset of Data in the decoded body, for error answers

	Partition int32  // set by the partitioner
	Slot      int32  // set by the partitioner; NoSlot for a null key
	Child     int32  // child slot of a split key, NoSlot otherwise
	Epoch     uint32 // the slot's (or child's) epoch

	HasKey  bool
	Verdict Verdict
}

// NoSlot marks an event that belongs to no slot: it has a null key, or its key is not split.
const NoSlot = -1

// Parked is the Partition of an event whose slot is between two owners: it is assigned again by the next table.
const Parked = -1

// DeadLetterSuffix ends the name of the stream that holds what was set aside of another one: the dead letter of web is
// web.deadletter. No other stream has a dot in its name.
const DeadLetterSuffix = ".deadletter"

// MaxFields is how many JSON pointers a stream may watch in the syntax check: the key and the id.
const MaxFields = 2

// Which of Event.Fields holds what.
const (
	FieldKey = 0
	FieldID  = 1
)

// Span is a part of Event.Data: the raw JSON value (strings with their quotes) at a watched pointer.
type Span struct {
	Off, Len  int32 // bytes; Len 0: absent
	Duplicate bool  // the name occurs twice on the way to the value: which one is meant is ambiguous
}

// Attr is a name with its value: a CloudEvents attribute, or a header of the request (name in lower case).
type Attr struct{ Name, Value []byte }

// Verdict says what has become of an event. Every event of a request ends with exactly one, and the counts
// in an answer are sums over them.
type Verdict uint8

// Keep is the zero value: the event goes on, and in an answer counts as accepted.
const (
	Keep         Verdict = iota
	Filtered             // a plugin or filter dropped it, as configured
	Rejected             // refused; Batch.Errors says why
	Duplicate            // its id is already safe
	DeadLettered         // set aside with its reason in the stream's dead letter
)

// String returns the word used in answers and logs.
func (v Verdict) String() string {
	switch v {
	case Keep:
		return "accepted"
	case Filtered:
		return "filtered"
	case Rejected:
		return "rejected"
	case Duplicate:
		return "duplicate"
	case DeadLettered:
		return "deadlettered"
	}
	return "unknown"
}

// Level is how far an acknowledged event must have come; a higher level includes the lower ones.
type Level uint8

// The zero value is no level: the stream's default applies.
const (
	LevelUnset Level = iota
	Accepted         // checked, in bounded memory; survives nothing
	Durable          // fsynced by us or by the backend; survives kill -9 and power cuts
	Delivered        // confirmed by the backend at its declared level
)

// String returns the word used in queries, configuration and answers.
func (l Level) String() string {
	switch l {
	case Accepted:
		return "accepted"
	case Durable:
		return "durable"
	case Delivered:
		return "delivered"
	}
	return ""
}

// ParseLevel is the inverse of String; ok is false for any other word.
func ParseLevel(s string) (l Level, ok bool) {
	switch s {
	case "accepted":
		return Accepted, true
	case "durable":
		return Durable, true
	case "delivered":
		return Delivered, true
	}
	return LevelUnset, false
}
