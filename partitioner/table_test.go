package partitioner

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

var secret = Secret{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func newTable(t testing.TB, partitions []Partition) *Table {
	t.Helper()
	table, err := NewTable(secret, SlotsFor(len(partitions)+1), partitions)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// must takes a step of a table's life that has to work.
func must(t testing.TB) func(*Table, error) *Table {
	return func(table *Table, err error) *Table {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
}

// The vectors are those of SipHash's reference implementation (vectors.h, vectors_sip128).
func TestHashIsSipHash128(t *testing.T) {
	var key Secret
	input := make([]byte, 64)
	for i := range input {
		input[i] = byte(i)
	}
	copy(key[:], input)
	for n, want := range map[int]string{0: "a3817f04ba25a8e66df67214c7550293", 1: "da87c1d86b99af44347659119b22fc45"} {
		hi, lo := Hash(key, input[:n])
		got := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, hi), lo)
		if fmt.Sprintf("%x", got) != want {
			t.Errorf("%d bytes: got %x, want %s", n, got, want)
		}
	}
	otherHi, _ := Hash(secret, nil)
	if hi, _ := Hash(key, nil); hi == otherHi {
		t.Error("the secret makes no difference")
	}
}

func TestSlotsFor(t *testing.T) {
	for partitions, want := range map[int]int{1: 64, 2: 128, 3: 256, 16: 1024, 17: 2048, 256: 16384} {
		if got := SlotsFor(partitions); got != want {
			t.Errorf("%d partitions: got %d, want %d", partitions, got, want)
		}
	}
}

func TestEveryHashHasOneSlot(t *testing.T) {
	table := newTable(t, Equal(10))
	width := uint64(math.MaxUint64)/uint64(table.Slots()) + 1
	for n := range uint64(table.Slots()) {
		for _, hi := range []uint64{n * width, n*width + width/2, n*width + width - 1} {
			if got := table.Lookup(hi, 0, 0); got != table.Slot(int32(n)) || got.Slot != int32(n) || got.Child != event.NoSlot || got.Epoch != 1 {
				t.Fatalf("hash %016x: got %+v, want slot %d", hi, got, n)
			}
		}
	}
}

func TestFirstPlacementFollowsTheWeights(t *testing.T) {
	for _, partitions := range [][]Partition{
		Equal(1), Equal(3), Equal(16), Equal(100), Equal(256),
		{{Weight: 1}, {Weight: 2}, {Weight: 0.5}, {Weight: 4}},
		{{Weight: 1}, {Weight: 5, State: Draining}, {Weight: 1}},
		{{Weight: 1e-9}, {Weight: 1}},
	} {
		table, err := NewTable(secret, SlotsFor(len(partitions)), partitions)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, p := range partitions {
			if p.State == Active {
				total += p.Weight
			}
		}
		for id, n := range table.Counts() {
			want := partitions[id].Weight / total * float64(table.Slots())
			if partitions[id].State != Active {
				want = 0
			}
			if math.Abs(float64(n)-want) >= 1 {
				t.Errorf("%d partitions: %d owns %d slots, its share is %.2f", len(partitions), id, n, want)
			}
		}
	}
}

// Neighbouring slots must not go to neighbouring partitions: a part of the hash space is spread like all of it.
func TestFirstPlacementIsMixed(t *testing.T) {
	table := newTable(t, Equal(16))
	counts := make([]int, 16)
	for n := range table.Slots() / 4 {
		counts[table.Slot(int32(n)).Partition]++
	}
	if mean := table.Slots() / 64; slices.Max(counts) > 2*mean || slices.Min(counts) < mean/3 {
		t.Errorf("a quarter of the slots is spread as %v", counts)
	}
}

func TestRendezvousPrefersByWeight(t *testing.T) {
	weights := []float64{1, 2, 5}
	wins := make([]float64, 3)
	const slots = 100_000
	for n := range int32(slots) {
		best := 0
		for p := range weights {
			if score(n, int32(p), weights[p]) > score(n, int32(best), weights[best]) {
				best = p
			}
		}
		wins[best]++
	}
	for p, w := range weights {
		if got, want := wins[p]/slots, w/8; math.Abs(got-want) > 0.01 {
			t.Errorf("weight %v of 8 wins %.3f of the slots, want %.3f", w, got, want)
		}
	}
}

func TestK18AddPartitionMovesSlotsOnlyToIt(t *testing.T) {
	for _, n := range []int{1, 2, 9, 16, 99, 255} {
		before := newTable(t, Equal(n))
		grown := must(t)(before.AddPartition(1))
		fresh := int32(n)
		claimed := grown.Claim(fresh)
		if got, most := float64(len(claimed))/float64(before.Slots()), 1.05/float64(n+1); got > most || len(claimed) == 0 {
			t.Errorf("%d partitions: %.4f of the slots move, at most %.4f should", n, got, most)
		}
		after := must(t)(must(t)(grown.Prepare(fresh, claimed...)).Commit(claimed...))
		for s := range int32(after.Slots()) {
			was, is := before.Slot(s), after.Slot(s)
			moved := slices.Contains(claimed, s)
			if moved && (is.Partition != fresh || is.Epoch != 2) || !moved && is != was {
				t.Fatalf("slot %d: %+v became %+v", s, was, is)
			}
		}
		counts := after.Counts()
		if slices.Max(counts)-slices.Min(counts) > 1 {
			t.Errorf("%d partitions: not balanced afterwards: %v", n, counts)
		}
		if before.Version() != 1 || after.Version() != 4 {
			t.Errorf("versions %d, %d", before.Version(), after.Version())
		}
		if again := after.Claim(fresh); len(again) != 0 {
			t.Errorf("claims %d more slots", len(again))
		}
	}
}

func TestClaimEmptiesDrainingPartition(t *testing.T) {
	table := must(t)(newTable(t, Equal(4)).SetState(2, Draining))
	for _, p := range []int32{0, 1, 3} {
		claimed := table.Claim(p)
		table = must(t)(must(t)(table.Prepare(p, claimed...)).Commit(claimed...))
	}
	if counts := table.Counts(); counts[2] != 0 || slices.Max(counts)-table.Slots()/3 > 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestMoveSteps(t *testing.T) {
	table := newTable(t, Equal(4))
	from := table.Slot(7)
	to := (from.Partition + 1) % 4
	moving := must(t)(table.Prepare(to, 7))
	if got := moving.Slot(7); got.Partition != from.Partition || !slices.Equal(moving.Moving(), []int32{7}) || int32(moving.byID(7).target) != to || got.Epoch != 1 {
		t.Errorf("moving: %+v", got)
	}
	if got := must(t)(moving.Commit(7)).Slot(7); got.Partition != to || got.Epoch != 2 {
		t.Errorf("committed: %+v", got)
	}
	if got := must(t)(moving.Abort(7)).Slot(7); got.Partition != from.Partition || got.Epoch != 2 {
		t.Errorf("aborted, must not go back to the old epoch: %+v", got)
	}
	if a, c := must(t)(moving.Abort(7)), must(t)(moving.Commit(7)); len(a.Moving())+len(c.Moving()) > 0 {
		t.Error("still moving")
	}
	if table.Slot(7) != from {
		t.Errorf("the old table changed: %+v", table.Slot(7))
	}
	for name, step := range map[string]func() (*Table, error){
		"prepare to the owner":          func() (*Table, error) { return table.Prepare(from.Partition, 7) },
		"prepare twice":                 func() (*Table, error) { return moving.Prepare(to, 7) },
		"prepare to nobody":             func() (*Table, error) { return table.Prepare(9, 7) },
		"commit without prepare":        func() (*Table, error) { return table.Commit(7) },
		"abort without prepare":         func() (*Table, error) { return table.Abort(7) },
		"no such slot":                  func() (*Table, error) { return table.Prepare(to, 100_000) },
		"negative slot":                 func() (*Table, error) { return table.Prepare(to, -1) },
		"the last active one drains":    func() (*Table, error) { return newTable(t, Equal(1)).SetState(0, Draining) },
		"state of nobody":               func() (*Table, error) { return table.SetState(4, Draining) },
		"one partition more than slots": func() (*Table, error) { return must(t)(NewTable(secret, 256, Equal(4))).AddPartition(1) },
		"partition without weight":      func() (*Table, error) { return table.AddPartition(0) },
	} {
		if _, err := step(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSplitKey(t *testing.T) {
	table := newTable(t, Equal(8))
	hi, lo := Hash(secret, []byte("hot"))
	parent := table.Lookup(hi, lo, 0)
	split := must(t)(table.Split(hi, lo, []int32{1, 5, 2, 7}))
	for source := range uint64(16) {
		got := split.Lookup(hi, lo, source)
		want := Place{Slot: parent.Slot, Child: int32(table.Slots()) + int32(source%4), Partition: []int32{1, 5, 2, 7}[source%4], Epoch: 1}
		if got != want {
			t.Errorf("source %d: got %+v, want %+v", source, got, want)
		}
	}
	for name, other := range map[string][2]uint64{"other lo": {hi, lo + 1}, "other hi": {hi + 1, lo}, "same probe": {hi, lo + 1<<40}} {
		if got := split.Lookup(other[0], other[1], 3); got != parent {
			t.Errorf("%s: got %+v, want the slot %+v", name, got, parent)
		}
	}
	id := int32(table.Slots()) + 2
	moved := must(t)(must(t)(split.Prepare(3, id)).Commit(id))
	if got := moved.Lookup(hi, lo, 2); got.Child != id || got.Partition != 3 || got.Epoch != 2 {
		t.Errorf("moved child: %+v", got)
	}
	if got := split.Lookup(hi, lo, 2); got.Partition != 2 {
		t.Errorf("the old table changed: %+v", got)
	}
	second := must(t)(split.Split(hi, lo^1, []int32{0, 1}))
	if got := second.Lookup(hi, lo^1, 0).Child; got != int32(table.Slots())+4 {
		t.Errorf("child id %d was used before", got)
	}
	for name, partitions := range map[string][]int32{"three": {0, 1, 2}, "one": {0}, "none": nil, "twice the same": {1, 1}, "nobody": {0, 8}} {
		if _, err := table.Split(hi, lo, partitions); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := split.Split(hi, lo, []int32{0, 1}); err == nil {
		t.Error("split twice: no error")
	}
	if _, err := split.Prepare(5, id); err == nil {
		t.Error("two children would share a partition: no error")
	}
}

func TestManySplitKeysAreFound(t *testing.T) {
	table := newTable(t, Equal(4))
	for i := range uint64(300) { // many with the same end of lo: they collide in the probe
		table = must(t)(table.Split(i<<50, i%7, []int32{0, 1}))
	}
	for i := range uint64(300) {
		if got := table.Lookup(i<<50, i%7, 1).Child; got != int32(table.Slots())+2*int32(i)+1 {
			t.Fatalf("key %d: child %d", i, got)
		}
	}
	if got := table.Splits(); len(got) != 300 || len(got[299].Children) != 2 || got[299].Hi != 299<<50 {
		t.Errorf("%d split keys", len(got))
	}
	if got, want := table.String(), "table 301: 512 slots on 4 partitions (4 active), 300 split keys"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestNewTableRefuses(t *testing.T) {
	for name, try := range map[string]struct {
		v          int
		partitions []Partition
	}{
		"no partition":     {64, nil},
		"too many":         {16384, Equal(257)},
		"not a power":      {1000, Equal(2)},
		"too few slots":    {64, Equal(2)},
		"too many slots":   {32768, Equal(2)},
		"no slots":         {0, Equal(1)},
		"negative slots":   {-64, Equal(1)},
		"no weight":        {64, []Partition{{}}},
		"infinite weight":  {64, []Partition{{Weight: math.Inf(1)}}},
		"weight NaN":       {64, []Partition{{Weight: math.NaN()}}},
		"nothing active":   {64, []Partition{{Weight: 1, State: Draining}}},
		"state from space": {64, []Partition{{Weight: 1, State: 7}}},
	} {
		if _, err := NewTable(secret, try.v, try.partitions); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// lived returns a table after a life of random steps, all of them allowed.
func lived(t testing.TB, seed uint64) *Table {
	rnd := rand.New(rand.NewPCG(seed, 1))
	table := newTable(t, Equal(2+rnd.IntN(20)))
	for range 200 {
		next, err := step(table, rnd)
		if err != nil {
			continue
		}
		if next.Version() != table.Version()+1 {
			t.Fatalf("version %d follows %d", next.Version(), table.Version())
		}
		table = next
	}
	return table
}

func step(t *Table, rnd *rand.Rand) (*Table, error) {
	id := int32(rnd.IntN(t.Slots() + 20))
	p := int32(rnd.IntN(len(t.partitions)))
	terms := SplitTerms{rnd.IntN(2) == 0, time.Duration(rnd.IntN(1e9)) * time.Millisecond, time.Duration(rnd.IntN(1e6)) * time.Millisecond, event.AsStream}
	switch rnd.IntN(16) {
	case 0:
		return t.AddPartition(rnd.Float64())
	case 1:
		return t.SetState(p, State(rnd.IntN(2)))
	case 2:
		return t.Split(rnd.Uint64(), rnd.Uint64(), []int32{p, (p + 1) % int32(len(t.partitions))})
	case 6:
		return t.SplitOn(rnd.Uint64(), rnd.Uint64(), []int32{p, (p + 1) % int32(len(t.partitions))}, terms)
	case 7:
		if all := t.Splits(); len(all) > 0 && rnd.IntN(2) == 0 {
			return t.Merge(all[0].Hi, all[0].Lo)
		} else if len(all) > 0 {
			return t.Grow(all[0].Hi, all[0].Lo, []int32{p, (p + 1) % int32(len(t.partitions))})
		}
	case 8:
		l := t.Ledger()
		l.remember(Merged{rnd.Uint64N(9), 1, terms.Born, terms.Hold})
		l.At, l.Load = terms.Born, rnd.Float64()*budgetLoad
		return t.WithLedger(l), nil
	case 3, 4:
		return t.Commit(id)
	case 5:
		return t.Abort(id)
	}
	return t.Prepare(p, id)
}

func TestStoredFormRoundTrips(t *testing.T) {
	for seed := range uint64(50) {
		table := lived(t, seed)
		doc, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseTable(secret, doc)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(parsed, table) {
			t.Fatalf("seed %d: %v came back as %v", seed, table, parsed)
		}
	}
}

const aLongTime = 9_000_000_000 * time.Second

// largest is as big as a table can get: every slot moves and has the longest epoch.
func largest(t testing.TB) *Table {
	table, err := NewTable(secret, maxSlots, Equal(MaxPartitions))
	if err != nil {
		t.Fatal(err)
	}
	for i := range table.slots {
		table.slots[i] = slot{math.MaxUint32, 254, 255}
	}
	all := make([]split, maxChildren/2)
	for i := range all {
		all[i] = split{math.MaxUint64 - uint64(i), math.MaxUint64, []child{
			{slot{math.MaxUint32, 100, 101}, 2_000_000_000 + int32(2*i)}, {slot{math.MaxUint32, 200, 201}, 2_000_000_001 + int32(2*i)}}, SplitTerms{Born: aLongTime, Hold: 30 * time.Minute}}
	}
	for i := range maxMerged {
		table.ledger.remember(Merged{math.MaxUint64, math.MaxUint64 - uint64(i), aLongTime, 30 * time.Minute})
	}
	table.ledger.At, table.ledger.Load, table.ledger.Slots = aLongTime, 0.01234567890123456, 0.01234567890123456
	table.version, table.nextChild = math.MaxUint64, math.MaxInt32
	if err := table.setSplits(all); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLargestTableFits(t *testing.T) {
	doc, err := json.Marshal(largest(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(doc))
	if len(doc) >= 256<<10 {
		t.Errorf("%d bytes", len(doc))
	}
	if _, err := ParseTable(secret, doc); err != nil {
		t.Error(err)
	}
}

func TestStoredFormHidesAndChecksTheSecret(t *testing.T) {
	doc, err := json.Marshal(newTable(t, Equal(2)))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(doc, secret[:]) || bytes.Contains(doc, []byte("AQIDBAUG")) || bytes.Contains(doc, []byte("01020304")) {
		t.Error("the secret is in the stored form")
	}
	if _, err := ParseTable(Secret{}, doc); err == nil || !strings.Contains(err.Error(), "another secret") {
		t.Errorf("with another secret: %v", err)
	}
}

func TestParseTableTruncatedAtEachByte(t *testing.T) {
	doc, err := json.Marshal(lived(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc {
		if _, err := ParseTable(secret, doc[:n]); err == nil {
			t.Fatalf("cut at byte %d: no error", n)
		}
	}
}

func TestParseTableRefuses(t *testing.T) {
	table := must(t)(newTable(t, Equal(2)).Split(1, 2, []int32{0, 1}))
	good, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*stored){
		"format":                func(s *stored) { s.Format = 2 },
		"version":               func(s *stored) { s.Version = 0 },
		"state":                 func(s *stored) { s.Partitions[0].State = "gone" },
		"no partition":          func(s *stored) { s.Partitions = nil },
		"owner":                 func(s *stored) { s.Owners[3] = 2 },
		"target":                func(s *stored) { s.Targets = bytes.Repeat([]byte{9}, len(s.Owners)) },
		"number of targets":     func(s *stored) { s.Targets = []byte{1} },
		"number of slots":       func(s *stored) { s.Owners = s.Owners[:100] },
		"epoch 0":               func(s *stored) { s.Epochs[5] = 0 },
		"too few epochs":        func(s *stored) { s.Epochs = s.Epochs[1:] },
		"too many epochs":       func(s *stored) { s.Epochs = append(s.Epochs, 1) },
		"epoch beyond 32 bits":  func(s *stored) { s.Epochs = append(s.Epochs[1:], 0xff, 0xff, 0xff, 0xff, 0x7f) },
		"child is a slot":       func(s *stored) { s.Splits[0].Children[0][0] = 5 },
		"child never given out": func(s *stored) { s.Splits[0].Children[0][0] = int64(s.NextChild) },
		"child twice":           func(s *stored) { s.Splits[0].Children[0][0] = s.Splits[0].Children[1][0] },
		"child's partition":     func(s *stored) { s.Splits[0].Children[0][1] = -1 },
		"children together":     func(s *stored) { s.Splits[0].Children[0][1], s.Splits[0].Children[0][2] = 1, 1 },
		"one child":             func(s *stored) { s.Splits[0].Children = s.Splits[0].Children[:1] },
		"split twice": func(s *stored) {
			s.Splits = append(s.Splits, storedSplit{Hi: 1, Lo: 2, Children: [][4]int64{{256, 0, 0, 1}, {257, 1, 1, 1}}})
			s.Splits[0].Lo = 2
		},
		"next child": func(s *stored) { s.Splits, s.NextChild = nil, 3 },
	} {
		var s stored
		if err := json.Unmarshal(good, &s); err != nil {
			t.Fatal(err)
		}
		spoil(&s)
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTable(secret, doc); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, doc := range []string{"", "null", "[]", string(good) + "{}", `{"format":1,"more":2}`} {
		if _, err := ParseTable(secret, []byte(doc)); err == nil {
			t.Errorf("%.20q: no error", doc)
		}
	}
}

// FuzzParseTable looks for tables that are accepted and then do not work.
func FuzzParseTable(f *testing.F) {
	doc, err := json.Marshal(must(f)(newTable(f, Equal(2)).Split(1, 2, []int32{0, 1})))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Fuzz(func(t *testing.T, doc []byte) {
		table, err := ParseTable(secret, doc)
		if err != nil {
			return
		}
		for n := range uint64(table.Slots()) {
			if got := table.Lookup(n<<table.shift, n, n); int(got.Partition) >= len(table.partitions) || got.Slot != int32(n) {
				t.Fatalf("slot %d: %+v", n, got)
			}
		}
		again, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTable(secret, again); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	plain, err := NewTable(secret, maxSlots, Equal(MaxPartitions))
	if err != nil {
		b.Fatal(err)
	}
	hashes := make([][2]uint64, 4096)
	for i := range hashes {
		hashes[i][0], hashes[i][1] = Hash(secret, fmt.Appendf(nil, "key %d", i))
	}
	some := plain
	for i := range 100 { // every hundredth look-up below is of a split key, and all of them have to ask
		some = must(b)(some.Split(hashes[i][0], hashes[i][1], []int32{1, 2, 3, 4}))
	}
	for name, table := range map[string]*Table{"16384 slots": plain, "100 split keys": some} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			sum := int32(0)
			for i := 0; b.Loop(); i++ {
				h := &hashes[i%len(hashes)]
				sum += table.Lookup(h[0], h[1], uint64(i)).Partition
			}
			_ = sum
		})
	}
}
