package window

import (
	"container/heap"
	"encoding/binary"

	"github.com/dchest/siphash"
)

// Owner is who holds a part of a window: a hash of the caller that outsiders can't compute. It is the same after a restart: else who
// sends all the time would own as many shares as there were processes, and in a full window its newest ids would make room as its oldest do.
type Owner uint64

// Owner returns that of an authenticated caller, or of a network; the secret is for nothing else.
func (s Secret) Owner(name []byte, authenticated bool) Owner {
	k0 := binary.LittleEndian.Uint64(s[:8])
	if authenticated { // no name of one kind is one of the other
		k0 = ^k0
	}
	return Owner(siphash.Hash(k0, binary.LittleEndian.Uint64(s[8:]), name))
}

// share is what one owner holds of a window. It is there as long as it is used or holds something.
type share[H any] struct {
	owner Owner
	size  int // what could be taken from it
	users int // that will still put something into it
	place int // in the heap
	held  H
}

// shares are those of all owners, the largest in front. When room is needed, the largest gives way: so an owner that holds
// no more than the room divided by the number of owners loses nothing to others.
type shares[H any] struct {
	of    map[Owner]*share[H]
	heap  []*share[H]
	spare *share[H] // the last that was closed
}

// Some owners have shares of their own; when there are more, the others have some shares together, by their hash. A share
// costs some 150 bytes.
const (
	ownShares    = 4096
	commonShares = 256
)

// use returns the share of an owner for one more user, who gives it back with done.
func (s *shares[H]) use(o Owner) *share[H] {
	sh := s.of[o]
	if sh == nil && len(s.of) >= ownShares {
		o %= commonShares
		sh = s.of[o]
	}
	if sh == nil {
		if sh = s.spare; sh == nil {
			sh = new(share[H])
		}
		*sh, s.spare = share[H]{owner: o}, nil
		if s.of == nil {
			s.of = map[Owner]*share[H]{}
		}
		s.of[o] = sh
		heap.Push(s, sh)
	}
	sh.users++
	return sh
}

// find returns the share of an owner, nil when it holds nothing.
func (s *shares[H]) find(o Owner) *share[H] {
	if sh := s.of[o]; sh != nil {
		return sh
	}
	return s.of[o%commonShares]
}

// done ends a use.
func (s *shares[H]) done(sh *share[H]) {
	sh.users--
	s.sized(sh)
}

// sized puts a share whose size has changed where it belongs, which is nowhere when it is of no use any more.
func (s *shares[H]) sized(sh *share[H]) {
	if sh.size > 0 || sh.users > 0 {
		heap.Fix(s, sh.place)
		return
	}
	heap.Remove(s, sh.place)
	delete(s.of, sh.owner)
	s.spare = sh
}

// victim is the share from which something is taken to make room for another one, which has so much besides on its way:
// the largest, or that one itself when none is larger with all that, or when it may not take from others.
func (s *shares[H]) victim(taker *share[H], coming int, fromOthers bool) *share[H] {
	largest := s.heap[0]
	if fromOthers && (taker.size == 0 || largest.size > taker.size+coming) {
		return largest
	}
	return taker
}

// The methods below are those of a heap.

// Len implements heap.Interface.
func (s *shares[H]) Len() int { return len(s.heap) }

// Less implements heap.Interface.
func (s *shares[H]) Less(i, j int) bool { return s.heap[i].size > s.heap[j].size }

// Swap implements heap.Interface.
func (s *shares[H]) Swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].place, s.heap[j].place = i, j
}

// Push implements heap.Interface.
func (s *shares[H]) Push(x any) {
	sh := x.(*share[H])
	sh.place = len(s.heap)
	s.heap = append(s.heap, sh)
}

// Pop implements heap.Interface.
func (s *shares[H]) Pop() any {
	last := s.heap[len(s.heap)-1]
	s.heap[len(s.heap)-1] = nil
	s.heap = s.heap[:len(s.heap)-1]
	return last
}
