package partitioner

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each file of testdata/fence is a scenario of the key "hot" on 4 partitions: lines that say what happens, and lines that begin
// with > for what the fence answers.
func TestFenceScenarios(t *testing.T) {
	eachScenario(t, "testdata/fence/*.txt", func(t *testing.T, _, text string) {
		s := &fenceScenario{}
		s.hi, s.lo = Hash(secret, []byte("hot"))
		s.table = newTable(t, Equal(4))
		for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
			switch want, answer := strings.CutPrefix(line, "> "); {
			case strings.HasPrefix(line, "#"):
			case answer:
				if want != s.answer {
					t.Fatalf("line %d: it answers\n%s", n+1, s.answer)
				}
			default:
				if err := s.do(line); err != nil {
					t.Fatalf("line %d: %v", n+1, err)
				}
			}
		}
	})
}

type fenceScenario struct {
	table  *Table
	hi, lo uint64
	fence  *Fence
	now    time.Duration
	answer string
}

// do carries out a line.
func (s *fenceScenario) do(line string) (err error) {
	var partition int32
	var a, b int32
	var number uint64
	slot := int32(s.hi >> s.table.shift)
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "slot":
		if _, err = fmt.Sscanf(line, "slot of hot is on %d", &partition); err != nil || s.table.Slot(slot).Partition == partition {
			return err
		}
		if s.table, err = s.table.Prepare(partition, slot); err == nil {
			s.table, err = s.table.Commit(slot)
			s.table.slots[slot].epoch = 1
		}
		return err
	case "split":
		if _, err = fmt.Sscanf(rest, "hot over %d,%d", &a, &b); err == nil {
			err = s.begin(Change{Kind: SplitKey, Hi: s.hi, Lo: s.lo, Partitions: []int32{a, b}})
		}
		return err
	case "merge":
		return s.begin(Change{Kind: MergeKey, Hi: s.hi, Lo: s.lo})
	case "move":
		if _, err = fmt.Sscanf(rest, "slot to %d", &a); err == nil {
			err = s.begin(Change{Kind: MoveSlot, Slot: slot, To: a})
		}
		return err
	case "inherits":
		if _, err = fmt.Sscanf(rest, "%d from %d up to %d", &a, &b, &number); err == nil {
			s.fence.Inherits(a, []Predecessor{{From: b, To: a, Gateway: "g", Number: number}})
		}
		return err
	case "sealed":
		if _, err = fmt.Sscanf(rest, "%d at %d", &partition, &number); err == nil {
			s.fence.Sealed(partition, number)
		}
	case "failed":
		s.fence.Failed()
	case "wait":
		var d time.Duration
		d, err = time.ParseDuration(rest)
		s.now += d
	default:
		return fmt.Errorf("what is %q?", line)
	}
	if err == nil {
		err = s.next()
	}
	return err
}

func (s *fenceScenario) begin(c Change) (err error) {
	if s.table, err = s.table.Begin(Plan{Changes: []Change{c}}); err != nil {
		return err
	}
	s.fence = NewFence("g", s.table, s.now)
	what := "slot of hot"
	if len(s.table.Pending()) > 0 {
		what = "hot"
	}
	s.answer = fmt.Sprintf("held back: %s. Leaves %s", what, ids(s.fence.Leaves()))
	return nil
}

// next asks the fence, and does what it says.
func (s *fenceScenario) next() (err error) {
	step := s.fence.Next(s.now)
	if step == Wait {
		s.answer = "wait"
		return nil
	}
	if s.table, err = s.fence.End(step); err != nil {
		return err
	}
	at := s.table.Lookup(s.hi, s.lo, 0)
	s.answer = fmt.Sprintf("%s: hot on %d, epoch %d", [...]string{"", "finish", "abandon"}[step], at.Partition, at.Epoch)
	if all := s.table.Splits(); len(all) > 0 {
		var on []int32
		for _, c := range all[0].Children {
			on = append(on, c.Partition)
		}
		s.answer = fmt.Sprintf("%s: hot on %s by source, epoch %d", [...]string{"", "finish", "abandon"}[step], ids(on), at.Epoch)
	}
	if step == Finish {
		for _, m := range s.fence.Marks() {
			s.answer += fmt.Sprintf("; %d follows %d up to %d", m.To, m.From, m.Number)
		}
	}
	return nil
}
