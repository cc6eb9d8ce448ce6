package jetstream_test

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward/jetstream"
)

func (r *rig) recent(q jetstream.Recent) (all []jetstream.Message) {
	r.t.Helper()
	if err := r.reader.Recent(r.t.Context(), q, func(m jetstream.Message) error { all = append(all, m); return nil }); err != nil {
		r.t.Fatal(err)
	}
	return all
}

// The end of a gateway's lanes is read from a time on, with a bound of bytes, and without what others wrote.
func TestRecentRuns(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	var newest time.Time
	q := jetstream.Recent{Stream: "web", Gateway: gateway, Bytes: 1 << 20, Since: func(at time.Time) time.Time { newest = at; return at.Add(-time.Hour) }}
	if got := r.recent(q); len(got) != 0 {
		t.Errorf("an empty stream has %v", got)
	}
	for i := range uint64(6) {
		r.send(newRun(int32(i%2), i/2*10+1, 10))
	}
	all := r.recent(q)
	if got := seqs(all); got != "[1 2 3 4 5 6]" || len(all[5].Payload) == 0 || !newest.Equal(all[5].Time) {
		t.Fatalf("%s, the newest of %v", got, newest)
	}
	other := q
	if other.Gateway = "0000000000000000"; len(r.recent(other)) != 0 {
		t.Error("another gateway's")
	}
	late := q
	late.Since = func(at time.Time) time.Time { return at }
	if got := seqs(r.recent(late)); got != "[6]" {
		t.Errorf("the newest alone: %s", got)
	}
	few := q
	few.Bytes = 1
	if got := seqs(r.recent(few)); got != "[6]" {
		t.Errorf("bounded: %s", got)
	}
	if few.Stream = "unknown"; len(r.recent(few)) != 0 {
		t.Error("of an unknown stream")
	}
}
