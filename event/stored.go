package event

// Stored is what is known of the events of a request that failed.
type Stored string

// What can be known. The zero value means no.
const (
	StoredNo      Stored = "no"
	StoredUnknown Stored = "unknown" // sending again may store them twice
	StoredDurable Stored = "durable" // they are safe, and must not be sent again
)
