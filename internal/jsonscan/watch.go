package jsonscan

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
