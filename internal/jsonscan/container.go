package jsonscan

import "github.com/headgate-io/headgate/event"

// object checks the object whose brace is src[i]. For depth and live see value.
func (s *Scanner) object(src []byte, i, depth int, live mask) int {
	if depth >= s.maxDepth {
		return s.tooDeep(src, i)
	}
	if i = space(src, i+1); i < len(src) && src[i] == '}' {
		return i + 1
	}
	var seen mask // pointers whose token at this depth has occurred in this object
	for {
		if i >= len(src) || src[i] != '"' {
			return s.malformed(i, "a name in quotes is expected")
		}
		s.escaped = false
		name := i + 1
		if i = s.text(src, name); i < 0 {
			return -1
		}
		var hits mask
		if live != 0 {
			hits = s.named(src[name:i-1], depth, live)
			s.mark(hits & seen)
			seen |= hits
		}
		if i >= len(src) || src[i] != ':' {
			if i = Skip(src, i); i >= len(src) || src[i] != ':' {
				return s.malformed(i, "a colon is expected behind a name")
			}
		}
		value := space(src, i+1)
		if i = s.value(src, value, depth+1, hits); i < 0 {
			return -1
		}
		if hits != 0 {
			s.found(hits, depth+1, value, i)
		}
		if i = space(src, i); i >= len(src) {
			return s.malformed(i, "the text ends inside an object")
		}
		switch src[i] {
		case ',':
			i = space(src, i+1)
		case '}':
			return i + 1
		default:
			return s.malformed(i, "a comma or the end of the object is expected")
		}
	}
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
		if i = space(src, i); i >= len(src) {
			return s.malformed(i, "the text ends inside an array")
		}
		switch src[i] {
		case ',':
			i = space(src, i+1)
		case ']':
			return i + 1
		default:
			return s.malformed(i, "a comma or the end of the array is expected")
		}
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
	s.refused(event.TooDeep, i, "arrays and objects are nested deeper than the limit")
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
	return s.malformed(len(src), "the text ends inside a container")
}

// named returns those of the live pointers whose token at depth is name (still escaped, without its quotes).
func (s *Scanner) named(name []byte, depth int, live mask) (hits mask) {
	for i := range s.watch {
		tokens := s.watch[i].tokens
		if live&(1<<i) != 0 && depth < len(tokens) && s.isName(name, tokens[depth].name) {
			hits |= 1 << i
		}
	}
	return hits
}

func (s *Scanner) isName(name []byte, want string) bool {
	if !s.escaped {
		return string(name) == want
	}
	if len(name) > cap(s.scratch) {
		return false // longer than any watched name can be written
	}
	return string(appendUnescaped(s.scratch[:0], name)) == want
}

// numbered returns those of the live pointers whose token at depth is the index n.
func (s *Scanner) numbered(n, depth int, live mask) (hits mask) {
	for i := range s.watch {
		tokens := s.watch[i].tokens
		if live&(1<<i) != 0 && depth < len(tokens) && tokens[depth].index == n {
			hits |= 1 << i
		}
	}
	return hits
}

// found notes src[from:to] as the value of those pointers in hits that have depth tokens.
func (s *Scanner) found(hits mask, depth, from, to int) {
	for i := range s.watch {
		if hits&(1<<i) != 0 && len(s.watch[i].tokens) == depth {
			s.Fields[i].Off, s.Fields[i].Len = int32(from-s.base), int32(to-from)
		}
	}
}

// mark notes that the way of the pointers in again is ambiguous.
func (s *Scanner) mark(again mask) {
	for i := 0; again != 0; i, again = i+1, again>>1 {
		if again&1 != 0 {
			s.Fields[i].Duplicate = true
		}
	}
}
