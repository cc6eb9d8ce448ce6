package jsonscan

import "encoding/binary"

// guesses is how many members of an event, counted as they come, are guessed.
const guesses = 32

// guess is a member's name as it was met in an earlier event, from its quote to its colon. Most events of a stream have
// the same names in the same order: one comparison then does what scanning the name and looking it up does otherwise.
type guess struct {
	text, mask [2]uint64 // the bytes, and which of them count
	at         place     // where the name was met; 0: nothing is guessed
	size       int       // in bytes
	hits       mask      // pointers whose token it is there
}

// place is what of a name's surroundings its hits depend on: how deep it is, and which pointers are live.
type place uint64

func placeOf(depth int, live mask) place { return place(depth+1)<<16 | place(live) }

// longestGuess is the most bytes a guess can have, and how many must be there to compare.
const longestGuess = 16

// fits reports whether the bytes of g stand at src[i].
func (g *guess) fits(src []byte, i int) bool {
	return i+longestGuess <= len(src) && (binary.LittleEndian.Uint64(src[i:i+8])&g.mask[0]^g.text[0])|
		(binary.LittleEndian.Uint64(src[i+8:i+16])&g.mask[1]^g.text[1]) == 0
}

// learn guesses from now on what src starts with, the size bytes of a name in plain characters with its
// colon; unless they are too many.
func (g *guess) learn(src []byte, size int, at place, hits mask) {
	if len(src) < longestGuess || size > longestGuess {
		return
	}
	g.at, g.size, g.hits = at, size, hits
	g.mask = [2]uint64{lowest(size), lowest(max(size-8, 0))}
	g.text = [2]uint64{binary.LittleEndian.Uint64(src) & g.mask[0], binary.LittleEndian.Uint64(src[8:]) & g.mask[1]}
}

// lowest returns a word whose n lowest bytes are set, n of any size.
func lowest(n int) uint64 { return 1<<(8*n) - 1 }
