package forward

// Headers that a run travels with, beside Content-Type and Content-Encoding. Every backend that has headers uses these, so
// that a receiver reads all of them alike.
const (
	HeaderStream       = "Headgate-Stream"
	HeaderPartition    = "Headgate-Partition"
	HeaderFirst        = "Headgate-First-Seq" // Run.First
	HeaderLast         = "Headgate-Last-Seq"  // Run.Last
	HeaderCount        = "Headgate-Count"     // Run.Events
	HeaderTableVersion = "Headgate-Table-Version"
	// HeaderAgain is "true" on a run of which an earlier send may have been stored, where the backend does not recognise it by
	// itself.
	HeaderAgain = "Headgate-Possible-Duplicate"
)
