package jsonscan

import (
	"fmt"
	"strconv"
	"strings"
)

// Pointer is a JSON pointer (RFC 6901). The zero value is the empty pointer.
type Pointer struct {
	text   string
	tokens []token
}

// token is one reference token: a name in an object, or an index in an array.
type token struct {
	name  string
	index int // -1 when name is not an index
}

// ParsePointer parses the string form of a JSON pointer: empty, or each token with a slash in front, with ~0 for ~ and ~1 for /.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return Pointer{}, fmt.Errorf("JSON pointer %q: must start with a slash", s)
	}
	p := Pointer{text: s}
	for _, part := range strings.Split(s[1:], "/") {
		name, err := unescapeToken(part)
		if err != nil {
			return Pointer{}, fmt.Errorf("JSON pointer %q: %w", s, err)
		}
		p.tokens = append(p.tokens, token{name, arrayIndex(name)})
	}
	return p, nil
}

// Empty reports whether p has no tokens: it would mean the whole value, and is not watched.
func (p Pointer) Empty() bool { return len(p.tokens) == 0 }

// String returns the form that ParsePointer reads.
func (p Pointer) String() string { return p.text }

func unescapeToken(s string) (string, error) {
	for i := 0; i < len(s); i++ {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return "", fmt.Errorf("a ~ must be written ~0 (and a slash in a name ~1)")
		}
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~"), nil
}

// arrayIndex is the array index that name stands for: decimal digits without leading zeros; else -1.
func arrayIndex(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(n) != name || n < 0 {
		return -1
	}
	return n
}
