package ledger

import "encoding/json"

// Book is what is known of a stream's letters. A letter is known by the gateway that wrote it and its number there.
type Book struct {
	Settled map[string]*Set `json:"settled"`
	Handed  *Handed         `json:"handed,omitempty"` // nil: the outcome of all that was handed over is noted
}

// Handed is letters that were handed over to their stream while their outcome is not noted.
type Handed struct {
	Letters map[string]*Set `json:"letters"`
	// After is where the stream's backend ended before the first of them: what has become of them is behind it. Nil where
	// the backend can't be read back.
	After []uint64 `json:"after,omitempty"`
}

// Parse reads a book; no text is an empty one.
func Parse(text []byte) (*Book, error) {
	b := &Book{Settled: map[string]*Set{}}
	if len(text) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, err
	}
	if b.Settled == nil {
		b.Settled = map[string]*Set{}
	}
	return b, nil
}

// Has reports whether a letter was handed over.
func (h *Handed) Has(gateway string, number uint64) bool { return h.Letters[gateway].Has(number) }

// Add notes a letter that is about to be handed over.
func (h *Handed) Add(gateway string, number uint64) {
	if h.Letters == nil {
		h.Letters = map[string]*Set{}
	}
	add(h.Letters, gateway, number, number)
}

// Has reports whether a letter is settled.
func (b *Book) Has(gateway string, number uint64) bool { return b.Settled[gateway].Has(number) }

// Settle notes letters from one to another, both included, as settled.
func (b *Book) Settle(gateway string, from, to uint64) { add(b.Settled, gateway, from, to) }

// SettleAll notes all letters of h as settled.
func (b *Book) SettleAll(h *Handed) {
	for gateway, set := range h.Letters {
		for _, r := range set.ranges {
			b.Settle(gateway, r.from, r.to)
		}
	}
}

// Forget joins what is noted of letters that are not there any more: all of a gateway that come before number.
func (b *Book) Forget(gateway string, number uint64) {
	if s := b.Settled[gateway]; s != nil && number > 1 {
		s.Add(1, number-1)
	}
}

func add(to map[string]*Set, gateway string, first, last uint64) {
	s := to[gateway]
	if s == nil {
		s = &Set{}
		to[gateway] = s
	}
	s.Add(first, last)
}
