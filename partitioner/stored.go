package partitioner

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/headgate-io/headgate/event"
)

// stored is the form in which a table is kept and exchanged: JSON with the columns of the slots as bytes. The
// secret is not in it; Check tells whether it is the one that the table was made with.
type stored struct {
	Format     int               `json:"format"`
	Version    uint64            `json:"version"`
	Check      uint64            `json:"check,string"`
	Partitions []storedPartition `json:"partitions"`
	Owners     []byte            `json:"owners"`            // a byte a slot
	Targets    []byte            `json:"targets,omitempty"` // the same, left out when no slot moves
	Epochs     []byte            `json:"epochs"`            // an uvarint a slot
	Splits     []storedSplit     `json:"splits,omitempty"`
	NextChild  int32             `json:"next_child"`
	Hash       string            `json:"hash,omitempty"` // siphash when it is left out
	Ledger     *storedLedger     `json:"ledger,omitempty"`
	Pending    []storedChange    `json:"pending,omitempty"`
	After      []storedMark      `json:"after,omitempty"`
	Classed    bool              `json:"classed,omitempty"`
}

type storedPartition struct {
	Weight float64 `json:"weight"`
	State  string  `json:"state"`
}

type storedSplit struct {
	Hi       uint64     `json:"hi,string"`
	Lo       uint64     `json:"lo,string"`
	Children [][4]int64 `json:"children"` // id, owner, target, epoch
	Spread   bool       `json:"spread,omitempty"`
	Class    string     `json:"class,omitempty"`
	Born     int64      `json:"born,omitempty"` // milliseconds, as all times
	Hold     int64      `json:"hold,omitempty"`
}

const storedFormat = 1

// checkOf is a value that only the holder of the secret can make.
func checkOf(secret Secret) uint64 {
	hi, _ := Hash(secret, []byte("headgate table"))
	return hi
}

// MarshalJSON returns the stored form, which is smaller than 256 KiB.
func (t *Table) MarshalJSON() ([]byte, error) {
	s := stored{Format: storedFormat, Version: t.version, Check: checkOf(t.secret), NextChild: t.nextChild, Classed: t.classed}
	for _, p := range t.partitions {
		s.Partitions = append(s.Partitions, storedPartition{p.Weight, p.State.String()})
	}
	moving := false
	for _, one := range t.slots {
		s.Owners = append(s.Owners, one.owner)
		s.Targets = append(s.Targets, one.target)
		s.Epochs = binary.AppendUvarint(s.Epochs, uint64(one.epoch))
		moving = moving || one.owner != one.target
	}
	if !moving {
		s.Targets = nil
	}
	if t.hash != SipHash {
		s.Hash = t.hash.String()
	}
	s.Ledger, s.Pending, s.After = storeLedger(&t.ledger), storePending(t.pending), storeMarks(t.after)
	for _, one := range t.splits.all {
		entry := storedSplit{Hi: one.hi, Lo: one.lo, Spread: one.Spread, Born: one.Born.Milliseconds(), Hold: one.Hold.Milliseconds(), Class: one.Class.String()}
		for _, c := range one.children {
			entry.Children = append(entry.Children, [4]int64{int64(c.id), int64(c.owner), int64(c.target), int64(c.epoch)})
		}
		s.Splits = append(s.Splits, entry)
	}
	return json.Marshal(s)
}

// ParseTable is the inverse of MarshalJSON. It refuses a table that is inconsistent, or was made with another secret.
func ParseTable(secret Secret, doc []byte) (*Table, error) {
	t, err := parseTable(secret, doc)
	if err != nil {
		return nil, fmt.Errorf("parse table: %w", err)
	}
	return t, nil
}

func parseTable(secret Secret, doc []byte) (*Table, error) {
	var newer struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(doc, &newer) == nil && newer.Format > storedFormat { // it may have what this one does not know
		return nil, fmt.Errorf("its format is %d, of a newer version of Headgate than this one, which knows %d: start that one", newer.Format, storedFormat)
	}
	var s stored
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("data behind its end")
	}
	switch {
	case s.Format != storedFormat:
		return nil, fmt.Errorf("format %d is not known", s.Format)
	case s.Version == 0:
		return nil, errors.New("it has no version")
	case s.Check != checkOf(secret):
		return nil, errors.New("it was made with another secret")
	}
	t := &Table{version: s.Version, secret: secret, nextChild: s.NextChild, classed: s.Classed}
	switch s.Hash {
	case "", SipHash.String():
	case Murmur2.String():
		t.hash = Murmur2
	default:
		return nil, fmt.Errorf("hash %q is not known", s.Hash)
	}
	partitions := make([]Partition, len(s.Partitions))
	for i, p := range s.Partitions {
		state, ok := parseState(p.State)
		if !ok {
			return nil, fmt.Errorf("partition %d: state %q is not known", i, p.State)
		}
		partitions[i] = Partition{p.Weight, state}
	}
	if err := t.setPartitions(partitions, len(s.Owners)); err != nil {
		return nil, err
	}
	if err := t.parseSlots(&s); err != nil {
		return nil, err
	}
	if err := t.parseSplits(s.Splits); err != nil {
		return nil, err
	}
	if err := t.parseLedger(s.Ledger); err != nil {
		return nil, err
	}
	if err := t.parseCrossing(&s); err != nil {
		return nil, err
	}
	return t, t.checkFixed()
}

func (t *Table) parseSlots(s *stored) error {
	if s.Targets == nil {
		s.Targets = s.Owners
	}
	if len(s.Targets) != len(s.Owners) {
		return errors.New("owners and targets differ in number")
	}
	t.slots = make([]slot, len(s.Owners))
	epochs := s.Epochs
	for i := range t.slots {
		epoch, n := binary.Uvarint(epochs)
		if n <= 0 {
			return fmt.Errorf("slot %d has no epoch", i)
		}
		epochs = epochs[n:]
		one, err := t.checked(int64(s.Owners[i]), int64(s.Targets[i]), int64(epoch))
		if err != nil {
			return fmt.Errorf("slot %d: %w", i, err)
		}
		t.slots[i] = one
	}
	if len(epochs) > 0 {
		return errors.New("more epochs than slots")
	}
	return nil
}

func (t *Table) parseSplits(all []storedSplit) error {
	var splits []split
	used := make(map[int64]bool)
	for _, s := range all {
		if s.Born < 0 || s.Hold < 0 || max(s.Born, s.Hold) > maxMilliseconds {
			return fmt.Errorf("key %016x%016x: born %d, hold %d", s.Hi, s.Lo, s.Born, s.Hold)
		}
		class, ok := event.ParseClass(s.Class)
		if !ok || class == event.ClassStrict || class != event.AsStream && s.Spread {
			return fmt.Errorf("key %016x%016x: split with class %q", s.Hi, s.Lo, s.Class)
		}
		one := split{hi: s.Hi, lo: s.Lo, SplitTerms: SplitTerms{s.Spread, milliseconds(s.Born), milliseconds(s.Hold), class}}
		for _, c := range s.Children {
			id := c[0]
			if id < int64(len(t.slots)) || id >= int64(t.nextChild) || used[id] {
				return fmt.Errorf("child slot %d is out of bounds or used twice", id)
			}
			used[id] = true
			owner, err := t.checked(c[1], c[2], c[3])
			if err != nil {
				return fmt.Errorf("child slot %d: %w", id, err)
			}
			one.children = append(one.children, child{owner, int32(id)})
		}
		splits = append(splits, one)
	}
	if int(t.nextChild) < len(t.slots) {
		return errors.New("next child slot is a slot")
	}
	return t.setSplits(splits)
}

// checked makes a slot of numbers that come from outside.
func (t *Table) checked(owner, target, epoch int64) (slot, error) {
	n := int64(len(t.partitions))
	if owner < 0 || owner >= n || target < 0 || target >= n || epoch < 1 || epoch >= 1<<32 {
		return slot{}, fmt.Errorf("partition %d, target %d, epoch %d", owner, target, epoch)
	}
	return slot{uint32(epoch), uint8(owner), uint8(target)}, nil
}

// String returns the word used in the stored form and in answers.
func (s State) String() string {
	if s == Draining {
		return "draining"
	}
	return "active"
}

func parseState(s string) (state State, ok bool) {
	switch s {
	case "active":
		return Active, true
	case "draining":
		return Draining, true
	}
	return Active, false
}
