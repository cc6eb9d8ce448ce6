package jsonscan

import "github.com/headgate-io/headgate/event"

// object checks the object whose brace is src[i]. For depth and live see value. The first lines of text and value
// are repeated here for values that are strings: two calls less per member, 8 % of the time of a check.
func (s *Scanner) object(src []byte, i, depth int, live mask) int {
	if depth >= s.maxDepth {
		return s.tooDeep(src, i)
	}
	if i = space(src, i+1); i < len(src) && src[i] == '}' {
		return i + 1
	}
	at := placeOf(depth, live)
	var seen mask // pointers whose token at this depth has occurred in this object
	for {
		g := &s.guesses[s.members%guesses]
		s.members++
		value, hits := i+g.size, g.hits
		if g.at != at || !g.fits(src, i) {
			if value, hits = s.name(src, i, depth, live, g); value < 0 {
				return -1
			}
		}
		value = space(src, value)
		if hits != 0 {
			s.mark(hits & seen)
			seen |= hits
		}
		switch {
		case value < len(src) && src[value] == '"':
			if i = plain(src, value+1); i < len(src) && src[i] == '"' {
				i++
			} else {
				i = s.textFrom(src, i)
			}
		case value < len(src) && src[value]-'0' <= 9:
			i = s.number(src, value)
		default:
			i = s.value(src, value, depth+1, hits)
		}
		if i < 0 {
			return -1
		}
		if hits != 0 {
			s.found(hits, depth+1, value, i)
		}
		i = space(src, i)
		if i < len(src) && src[i] == '}' {
			return i + 1
		}
		if i >= len(src) || src[i] != ',' {
			return s.malformed(src, i, "a comma or the end of the object is expected")
		}
		i = space(src, i+1)
	}
}

// name checks a name that should start at src[i], with its colon, and makes it the guess g. It returns the index behind
// the colon, -1 if there is none, and those of the live pointers whose token at depth it is.
func (s *Scanner) name(src []byte, i, depth int, live mask, g *guess) (end int, hits mask) {
	if i >= len(src) || src[i] != '"' {
		return s.malformed(src, i, "a name in quotes is expected"), 0
	}
	s.escaped = false
	start := i
	i = plain(src, start+1)
	simple := i < len(src) && src[i] == '"'
	if simple {
		i++
	} else if i = s.textFrom(src, i); i < 0 {
		return -1, 0
	}
	name := src[start+1 : i-1]
	if live != 0 && (s.escaped || s.lengths>>(len(name)&63)&1 != 0) {
		hits = s.named(name, depth, live)
	}
	if i = space(src, i); i >= len(src) || src[i] != ':' {
		return s.malformed(src, i, "a colon is expected behind a name"), 0
	}
	if simple {
		g.learn(src[start:], i+1-start, placeOf(depth, live), hits)
	}
	return i + 1, hits
}

// array checks the array whose bracket is src[i]. For depth and live see value.
func (s *Scanner) array(src []byte, i, depth int, live mask) int {
	if depth >= s.maxDepth {
		return s.tooDeep(src, i)
	}
	if i = space(src, i+1); i < len(src) && src[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		var hits mask
		if live != 0 {
			hits = s.numbered(n, depth, live)
		}
		value := i
		if i = s.value(src, value, depth+1, hits); i < 0 {
			return -1
		}
		if hits != 0 {
			s.found(hits, depth+1, value, i)
		}
		i = space(src, i)
		if i < len(src) && src[i] == ']' {
			return i + 1
		}
		if i >= len(src) || src[i] != ',' {
			return s.malformed(src, i, "a comma or the end of the array is expected")
		}
		i = space(src, i+1)
	}
}

// space is Skip for places where white space is rare.
func space(src []byte, i int) int {
	if i < len(src) && src[i] > ' ' {
		return i
	}
	return Skip(src, i)
}

// tooDeep refuses the container at src[i] and looks for its end by counting brackets: the value is lost, but those
// behind it are not. It needs no memory, so it does not check that the kinds of brackets match.
func (s *Scanner) tooDeep(src []byte, i int) int {
	s.refuse(event.TooDeep, i, s.deep)
	for open := 0; i < len(src); {
		switch src[i] {
		case '"':
			if i = s.text(src, i+1); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				return i + 1
			}
		}
		i++
	}
	return s.malformed(src, i, "")
}
