package wire

// Block returns the metadata block of the frame that head is the beginning of, as a view. When head does not have all of it,
// there is none and need says how many bytes of the frame it takes; need 0: the frame has no block of ours.
func Block(head []byte, codec string) (block []byte, need int) {
	start, size := findBlock(head, codec)
	switch {
	case start == 0:
		return nil, 0
	case len(head) < start:
		return nil, start
	case size > len(head)-start:
		return nil, start + size
	}
	return head[start : start+size : start+size], 0
}
