package event

// Class is the order that the events of a batch keep, where it is another one than their stream's.
type Class uint8

// The classes. A key in a class is another key than the same one in another class: the class is hashed with it.
const (
	AsStream    Class = iota
	ClassStrict       // one order of each key
	ClassSource       // one order of each key and producer
)

// String returns the word used in requests and answers, "" for AsStream.
func (c Class) String() string { return [...]string{"", "strict", "source"}[c] }

// ParseClass is the inverse of String.
func ParseClass(word string) (c Class, ok bool) {
	for c := range ClassSource + 1 {
		if c.String() == word {
			return c, true
		}
	}
	return AsStream, false
}
