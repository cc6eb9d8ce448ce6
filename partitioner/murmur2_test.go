package partitioner

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/event"
)

func murmur2Table(t testing.TB, partitions int) *Table {
	t.Helper()
	return must(t)(NewMurmur2Table(secret, partitions))
}

// The partitions are those that Kafka's Java client gives these keys.
func TestK02K04Murmur2PlacesLikeJavaProducers(t *testing.T) {
	for _, c := range []struct {
		key        string
		partitions int
		want       int32
	}{
		{"fd7af248-ce5c-46a5-93d7-1c0c9005b99d", 32, 26},
		{"354afe16-939a-4ea8-8e17-8bb0840b6886", 10, 4},
		{"f562ac3b-2224-4e25-a0ab-56094e10c239", 10, 5},
		{"TT0124", 15, 10},
		{"", 12, 9},
		{"a", 12, 4},
		{"user-42", 16, 12},
	} {
		table := murmur2Table(t, c.partitions)
		b := keyed(c.key)
		unmetered(table).Assign(b, nil)
		e := &b.Events[0]
		if _, _, at := table.Locate(event.AsStream, []byte(c.key), nil); at.Partition != c.want || e.Partition != c.want || e.Slot != c.want {
			t.Errorf("%q of %d: partition %d and %d (slot %d), want %d", c.key, c.partitions, at.Partition, e.Partition, e.Slot, c.want)
		}
	}
}

// The sums are those of the test suite of Kafka's Java client, as signed numbers there.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107} {
		if got := int32(Murmur2Of([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

func TestK01Murmur2NoKeyIsStickyEmptyKeyIsAKey(t *testing.T) {
	p := unmetered(murmur2Table(t, 12))
	got := map[int32]bool{}
	for range 24 {
		b := keyless(40, stickyBytes/40)
		p.Assign(b, nil)
		for _, e := range b.Events {
			if e.Partition != b.Events[0].Partition || e.Slot != event.NoSlot {
				t.Fatalf("an event without a key left its turn: %+v", e)
			}
		}
		got[b.Events[0].Partition] = true
		empty := keyed("", "")
		p.Assign(empty, nil)
		if empty.Events[0].Partition != 9 || empty.Events[1].Partition != 9 {
			t.Fatalf("empty keys on %d and %d", empty.Events[0].Partition, empty.Events[1].Partition)
		}
	}
	if len(got) != 12 {
		t.Errorf("turns on %d partitions of 12", len(got))
	}
}

func TestMurmur2TableIsFixed(t *testing.T) {
	table := murmur2Table(t, 3)
	hi, lo := table.KeyHash(event.AsStream, []byte("hot"))
	for name, step := range map[string]func() (*Table, error){
		"add":    func() (*Table, error) { return table.AddPartition(1) },
		"drain":  func() (*Table, error) { return table.SetState(0, Draining) },
		"weight": func() (*Table, error) { return table.SetWeight(0, 2) },
		"move":   func() (*Table, error) { return table.Prepare(1, 0) },
		"split":  func() (*Table, error) { return table.Split(hi, lo, []int32{0, 1}) },
		"none":   func() (*Table, error) { return NewMurmur2Table(secret, 0) },
		"many":   func() (*Table, error) { return NewMurmur2Table(secret, MaxPartitions+1) },
	} {
		if _, err := step(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	doc, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	if again := must(t)(ParseTable(secret, doc)); again.HashKind() != Murmur2 {
		t.Errorf("came back as %v", again.HashKind())
	}
	var s stored
	if err := json.Unmarshal(doc, &s); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(s.Owners)
	if doc, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseTable(secret, doc); err == nil {
		t.Error("a table with moved slots was accepted")
	}
}
