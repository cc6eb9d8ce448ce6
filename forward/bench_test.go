package forward

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// discard confirms everything at once.
type discard struct{}

func (discard) Resume(context.Context, int32) (uint64, error) { return 0, nil }
func (discard) Send(context.Context, *Run) error              { return nil }

// waker confirms everything at once and tells of it.
type waker struct{ sent chan struct{} }

func (waker) Resume(context.Context, int32) (uint64, error) { return 0, nil }

func (w waker) Send(context.Context, *Run) error {
	wake(w.sent)
	return nil
}

// lines returns a batch of n lines of 256 bytes that look like an access log with hot clients, their keys over the
// partitions.
func lines(rnd *rand.Rand, n, partitions, keys int) *event.Batch {
	b := &event.Batch{Stream: "web", ID: "abcdefghijklmnopqrstuvwxyz", Producer: []byte("10.0.0.1"), TableVersion: 1, Ack: event.Accepted, NoNewlines: true}
	clients := rand.NewZipf(rnd, 1.1, 1, uint64(keys-1))
	for i := range n {
		k := clients.Uint64()
		key := fmt.Sprintf("10.%d.%d.%d", k*0x9e%251, k>>8, k&0xff)
		line := fmt.Sprintf(`{"time":"2026-03-02T08:%02d:%02d.%03dZ","remote_ip":%q,"remote_user":"-","request":"GET /downloads/release-%d HTTP/1.1","response":%d,"bytes":%d,"referrer":"-","agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0"}`,
			i/60%60, i%60, rnd.IntN(1000), key, rnd.IntN(2000), 200+rnd.IntN(4)*100, rnd.IntN(1<<(8+rnd.IntN(10))), 120+rnd.IntN(12))
		data := []byte(line)
		hash := (k + 1) * 0x9e3779b97f4a7c15
		slot := int32(hash >> 54)
		at := strings.Index(line, key)
		b.Events = append(b.Events, event.Event{Data: data, Key: data[at : at+len(key)], HasKey: true,
			Hash: hash ^ hash>>29, Slot: slot, Child: event.NoSlot, Epoch: 1, Partition: slot % int32(partitions)})
	}
	return b
}

func BenchmarkForward(b *testing.B) {
	for _, codec := range []string{"none", "s2", "zstd"} {
		for _, keys := range []int{1000, 50_000} {
			b.Run(fmt.Sprintf("%s/keys=%d", codec, keys), func(b *testing.B) { benchmark(b, codec, keys) })
		}
	}
}

func benchmark(b *testing.B, codec string, keys int) {
	const events = 500
	limit, to := budget.New(64<<20), waker{make(chan struct{}, 1)}
	f, err := New(Config{Stream: "web", Gateway: "0011223344556677", Partitions: 16, Codec: codec}, to, Deps{Budget: limit})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.Run(b.Context()) }()
	rnd := rand.New(rand.NewPCG(1, 2))
	batches := make([]*event.Batch, 64)
	for i := range batches {
		batches[i] = lines(rnd, events, 16, keys)
	}
	b.ReportAllocs()
	touched := byte(0)
	before := cpuTime()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		batch := batches[i%len(batches)]
		for j := range batch.Events { // as warm in the cache as a body that has just been checked
			for data := batch.Events[j].Data; len(data) >= 64; data = data[64:] {
				touched += data[0]
			}
		}
		if _, err := f.Forward(b.Context(), batch, f.NewReceipt(), nil); err != nil {
			b.Fatal(err)
		}
		for limit.Held() > 16<<20 {
			<-to.sent
		}
	}
	b.StopTimer()
	f.Close()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/events, "cpu-ns/event")
}

// cpuTime is the processor time of this process, user and system: beside others on the machine only that counts.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
