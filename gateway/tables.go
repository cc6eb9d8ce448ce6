package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/partitioner"
)

// storedTable is a stream's routing table in the control store: it changes by compare-and-swap alone.
type storedTable struct {
	docs     tableDocs
	stream   string
	secret   partitioner.Secret
	revision uint64
}

// tableDocs are the documents of tables; *control.Documents are.
type tableDocs interface {
	Read(ctx context.Context, name string) (control.Document, error)
	Write(ctx context.Context, name string, value []byte, revision uint64) (uint64, error)
}

// openTable reads the stream's routing table, or makes its first one.
func (g *Gateway) openTable(ctx context.Context, name string, secret [16]byte, cfg *config.Stream) (*storedTable, *partitioner.Table, error) {
	at := &storedTable{docs: g.store.Tables, stream: name, secret: secret}
	doc, err := at.docs.Read(ctx, name)
	if errors.Is(err, control.ErrNotFound) {
		table, err := firstTable(secret, cfg)
		if err != nil {
			return nil, nil, err
		}
		return at, table, at.write(ctx, table)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read routing table: %w", err)
	}
	at.revision = doc.Revision
	table, err := partitioner.ParseTable(secret, doc.Value)
	if err != nil {
		return nil, nil, fmt.Errorf("read routing table: %w", err)
	}
	if err := fitsPartitions(table, &cfg.Partitions); err != nil {
		return nil, nil, err
	}
	if is := table.HashKind().String(); is != cfg.Hash {
		return nil, nil, event.Problemf(event.BadConfiguration, "hash: the stream was made with %s and cannot have %s: its keys would change their partitions; choose %[1]s, or another stream", is, cfg.Hash)
	}
	ordering, _ := partitioner.ParseOrdering(cfg.Ordering)
	fitting, err := table.Restrict(ordering)
	if err == nil && fitting != table {
		err = at.write(ctx, fitting)
	}
	return at, fitting, err
}

func firstTable(secret [16]byte, cfg *config.Stream) (*partitioner.Table, error) {
	if n := cfg.Partitions.Max; cfg.Hash == partitioner.Murmur2.String() {
		return partitioner.NewMurmur2Table(secret, n)
	} else {
		return partitioner.NewTable(secret, partitioner.SlotsFor(n), partitioner.Equal(cfg.Partitions.Min))
	}
}

// fitsPartitions refuses a number of partitions for which a table was not made: its slots are fixed, and what a partition
// holds needs its lane.
func fitsPartitions(t *partitioner.Table, want *config.Partitions) error {
	has, most := len(t.Partitions()), t.Slots()/partitioner.SlotsFor(1)
	if t.HashKind() == partitioner.Murmur2 {
		most = has
	}
	switch {
	case want.Max < has:
		return event.Problemf(event.PartitionsFixed, "partitions: the stream has %d and cannot have %d; choose %[1]d as the most, or another stream", has, want.Max)
	case want.Max > most:
		return event.Problemf(event.PartitionsFixed, "partitions: the stream was made for %d at most and cannot have %d; choose at most %[1]d, or another stream", most, want.Max)
	}
	return nil
}

// write stores a table in place of the one that was read or written last. After an error that leaves open whether it is
// stored, what is stored says. That something else is stored is an *overtakenError: the next write is in place of that.
func (s *storedTable) write(ctx context.Context, t *partitioner.Table) error {
	doc, err := t.MarshalJSON()
	if err != nil {
		return err
	}
	revision, err := s.docs.Write(ctx, s.stream, doc, s.revision)
	if err == nil {
		s.revision = revision
		return nil
	}
	err = fmt.Errorf("store routing table %d: %w", t.Version(), err)
	found, unread := s.docs.Read(ctx, s.stream)
	if unread != nil || found.Revision == s.revision {
		return err
	}
	if bytes.Equal(found.Value, doc) {
		s.revision = found.Revision
		return nil
	}
	other, unparsed := partitioner.ParseTable(s.secret, found.Value)
	if unparsed != nil {
		return err
	}
	s.revision = found.Revision
	return &overtakenError{other, err}
}
