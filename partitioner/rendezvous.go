package partitioner

import (
	"cmp"
	"math"
	"slices"
)

// score is how much slot wants to be on partition: weighted rendezvous hashing (Wang, Ravishankar: HRW; weights by
// -w/ln(u)). It depends on this one pair only, so what happens to other partitions changes no preference among the rest.
func score(slot, partition int32, weight float64) float64 {
	u := (float64(mix(uint64(slot)<<32|uint64(partition))>>12) + 0.5) / (1 << 52) // in (0, 1), both ends excluded
	return -weight / math.Log(u)
}

// mix is the finalizer of SplitMix64. It need not be keyed: which slot a key is in is secret enough.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// shares returns how many slots each partition should own: in proportion to the weights of the active ones, rounded
// so that they add up (largest remainder first, then the lower id).
func (t *Table) shares() []int {
	total := 0.0
	for _, id := range t.active {
		total += t.partitions[id].Weight
	}
	shares, left := make([]int, len(t.partitions)), len(t.slots)
	rest := make([]float64, len(t.partitions))
	for _, id := range t.active {
		exact := float64(len(t.slots)) * (t.partitions[id].Weight / total)
		shares[id] = int(exact)
		rest[id] = exact - float64(shares[id])
		left -= shares[id]
	}
	byRest := slices.Clone(t.active)
	slices.SortStableFunc(byRest, func(a, b int32) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i, left = i+1, left-1 {
		shares[byRest[i%len(byRest)]]++
	}
	return shares
}

// placeAll gives each slot to the partition it wants most among those whose share is not used up: plain rendezvous
// would leave the fullest of 16 partitions a quarter over the mean.
func (t *Table) placeAll() {
	room := t.shares()
	for n := range t.slots {
		best, top := noPartition, -1.0
		for _, id := range t.active {
			if room[id] == 0 {
				continue
			}
			if s := score(int32(n), id, t.partitions[id].Weight); s > top {
				best, top = id, s
			}
		}
		room[best]--
		t.slots[n] = slot{epoch: 1, owner: uint8(best), target: uint8(best)}
	}
}

// Claim returns the slots that partition p should take over so that it owns its share: from the partitions that own
// more than theirs, those first that want p most in relation to their owner. Slots that move already count where
// they go and are not moved again.
func (t *Table) Claim(p int32) []int32 {
	surplus, rank := t.surplus(), make([]float64, len(t.slots))
	var candidates, claimed []int32
	for n, s := range t.slots {
		if s.owner == s.target && int32(s.owner) != p && surplus[s.owner] > 0 {
			id := int32(n)
			rank[n] = score(id, p, t.partitions[p].Weight) / score(id, int32(s.owner), t.partitions[s.owner].Weight)
			candidates = append(candidates, id)
		}
	}
	slices.SortStableFunc(candidates, func(a, b int32) int { return cmp.Compare(rank[b], rank[a]) })
	for _, n := range candidates {
		if from := t.slots[n].owner; surplus[p] < 0 && surplus[from] > 0 {
			surplus[from]--
			surplus[p]++
			claimed = append(claimed, n)
		}
	}
	return claimed
}

// surplus returns by how many slots each partition is over its share once all moves are done.
func (t *Table) surplus() []int {
	surplus := make([]int, len(t.partitions))
	for i, share := range t.shares() {
		surplus[i] = -share
	}
	for _, s := range t.slots {
		surplus[s.target]++
	}
	return surplus
}
