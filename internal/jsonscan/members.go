package jsonscan

// Members goes over the members of an object in which Check found no fault; what else it is given, it goes over as long
// as that makes sense. Name, Value and At are those of the member that Next has come to.
type Members struct {
	Name  []byte // with its quotes, escapes and all
	Value []byte // as it stands
	At    int    // offset of Value in the text

	src  []byte
	next int // where the next name or the end is
}

// MembersOf returns the members of src, an object with optional white space around it.
func MembersOf(src []byte) Members {
	return Members{src: src, next: Skip(src, 0) + 1}
}

// Next goes to the next member; it returns false when there is none.
func (m *Members) Next() bool {
	i := Skip(m.src, m.next)
	if i < len(m.src) && m.src[i] == ',' {
		i = Skip(m.src, i+1)
	}
	if i >= len(m.src) || m.src[i] != '"' {
		return false
	}
	end := behindText(m.src, i)
	m.Name = m.src[i:end:end]
	m.At = Skip(m.src, min(Skip(m.src, end)+1, len(m.src))) // behind the colon
	m.next = behind(m.src, m.At)
	m.Value = m.src[m.At:m.next:m.next]
	return len(m.Value) > 0
}

// behind returns the index behind the value that starts at src[i].
func behind(src []byte, i int) int {
	for open := 0; i < len(src); {
		switch src[i] {
		case '"':
			i = behindText(src, i)
		case '{', '[':
			open++
			i++
		case '}', ']':
			open--
			i++
		default:
			i++
			if open > 0 {
				continue
			}
			for i < len(src) && src[i] > ' ' && src[i] != ',' && src[i] != '}' && src[i] != ']' {
				i++
			}
		}
		if open <= 0 {
			return i
		}
	}
	return len(src)
}

// behindText returns the index behind the string whose quote is src[i].
func behindText(src []byte, i int) int {
	for i = plain(src, i+1); i < len(src) && src[i] != '"'; i = plain(src, i) {
		if src[i] == '\\' {
			i++
		}
		i = min(i+1, len(src))
	}
	return min(i+1, len(src))
}
