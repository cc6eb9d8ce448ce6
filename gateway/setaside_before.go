package gateway

import (
	"context"
	"strconv"
	"sync"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/internal/ledger"
)

// buriedBefore knows which events of its stream the dead letter had when the process began. An event that was buried right
// before a crash is refused again after it, since its spool does not know yet; it must not become a second letter.
type buriedBefore struct {
	mu      sync.Mutex // guards numbers
	numbers map[int32]*ledger.Set
}

// has reports whether d has a letter of the event. The first call reads all letters.
func (b *buriedBefore) has(ctx context.Context, d *deadLetter, partition int32, number uint64) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.numbers == nil {
		numbers, err := d.refusedSoFar(ctx)
		if err != nil {
			return false, err
		}
		b.numbers = numbers
	}
	return b.numbers[partition].Has(number), nil
}

// refusedSoFar returns the numbers of events, by partition, that the backend refused and that are letters of this gateway.
func (d *deadLetter) refusedSoFar(ctx context.Context) (map[int32]*ledger.Set, error) {
	if _, err := d.g.openDeadLetter(ctx, d.name); err != nil { // at a start it may not be open yet
		return nil, err
	}
	all := map[int32]*ledger.Set{}
	err := d.g.ReadRows(ctx, admin.Query{Stream: d.name, Partition: admin.AllPartitions}, func(rows []admin.Row) error {
		for i := range rows {
			l := admin.Letter{Row: rows[i]}
			partition, noPartition := strconv.ParseInt(l.Attribute("partition"), 10, 32)
			number, noNumber := strconv.ParseUint(l.Attribute("number"), 10, 64)
			if noPartition != nil || noNumber != nil || number == 0 || l.Gateway != d.g.folder.ID {
				continue
			}
			s := all[int32(partition)]
			if s == nil {
				s = &ledger.Set{}
				all[int32(partition)] = s
			}
			s.Add(number, number)
		}
		return nil
	})
	return all, err
}
