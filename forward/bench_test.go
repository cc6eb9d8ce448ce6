package forward

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// discard confirms everything at once.
type discard struct{}

func (discard) Resume(context.Context, int32) (uint64, error) { return 0, nil }
func (discard) Send(context.Context, *Run) error              { return nil }

// lines returns a batch of n lines of 256 bytes that look like an access log, with keys over the partitions.
func lines(n, partitions, keys int) *event.Batch {
	b := &event.Batch{Stream: "web", ID: "abcdefghijklmnopqrstuvwxyz", Producer: []byte("10.0.0.1"), TableVersion: 1, Ack: event.Accepted}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		k := rnd.IntN(keys)
		key := fmt.Sprintf("192.168.%d.%d", k/256, k%256)
		line := fmt.Sprintf(`{"time": "17/May/2015:08:05:%02d +0000", "remote_ip": %q, "request": "GET /downloads/product_%d HTTP/1.1", "response": %d, "bytes": %d, "agent": "Debian APT-HTTP/1.3 (0.8.16~exp12ubuntu10.%d)`,
			i%60, key, rnd.IntN(100), 200+rnd.IntN(4)*100, rnd.IntN(100000), rnd.IntN(30))
		for len(line) < 254 {
			line += "."
		}
		hash := uint64(k+1) * 0x9e3779b97f4a7c15
		slot := int32(hash >> 54)
		b.Events = append(b.Events, event.Event{Data: []byte(line + `"}`), Key: []byte(key), HasKey: true,
			Hash: hash, Slot: slot, Child: event.NoSlot, Epoch: 1, Partition: slot % int32(partitions)})
	}
	return b
}

func BenchmarkForward(b *testing.B) {
	for _, codec := range []string{"none", "s2", "zstd"} {
		for _, keys := range []int{1000, 1 << 20} {
			b.Run(fmt.Sprintf("%s/keys=%d", codec, keys), func(b *testing.B) { benchmark(b, codec, keys) })
		}
	}
}

func benchmark(b *testing.B, codec string, keys int) {
	const events = 500
	f, err := New(Config{Stream: "web", Gateway: "0011223344556677", Partitions: 16, Codec: codec}, discard{},
		Deps{Budget: budget.New(64 << 20)})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.Run(b.Context()) }()
	batches := make([]*event.Batch, 4) // as warm in the cache as a body that has just been checked
	for i := range batches {
		batches[i] = lines(events, 16, keys)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		for {
			r := f.NewReceipt()
			if _, err := f.Forward(b.Context(), batches[i%len(batches)], r, nil); err == nil {
				break
			}
			runtime.Gosched()
		}
	}
	b.StopTimer()
	f.Close()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}
