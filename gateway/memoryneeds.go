package gateway

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/headgate-io/headgate/internal/settings"
)

// What a process needs beside what the setting memory bounds, measured: see "Memory" in docs/operate.md.
const (
	processBytes    = 60 << 20
	connectionBytes = 31 << 10 // one that is open, at most
	idBytes         = 32       // one that is remembered
	onceBytes       = 256      // an Idempotency-Key and the answer to its request
	frameIndexBytes = 32       // a frame in the index of a spool
	framesIndexed   = 2_000_000
	garbagePart     = 3 // a third of what memory bounds waits to be collected
)

// memoryNeeds is what memory a configuration needs, and what it may come to.
type memoryNeeds struct {
	surely settings.Bytes // under load, whatever is sent
	atMost settings.Bytes // when all that is bounded is at its bound at once
}

// memoryNeeds adds up. Surely needed are the process, what memory bounds with its garbage, and the ids of streams that have them in
// every event; the rest is bounds that few ever come near: connections, instances of plugins, keys of requests, a full spool.
func (c *Config) memoryNeeds(processors int) (n memoryNeeds) {
	n.surely = processBytes + c.Memory + c.Memory/garbagePart
	others := settings.Bytes(0)
	for _, s := range c.Streams {
		ids := settings.Bytes(s.ID.Window.IDs) * idBytes
		switch {
		case s.ID.None:
		case s.ID.JSON != "" || s.ID.Header != "":
			n.surely += ids
		default: // of CloudEvents alone
			others += ids
		}
		others += settings.Bytes(len(s.Plugins)*min(processors, 8)) * c.Plugins.Memory
		others += framesIndexed * frameIndexBytes
	}
	others += settings.Bytes(c.HTTP.MaxConnections) * connectionBytes
	others += settings.Bytes(c.Idempotency.Keys) * onceBytes
	n.atMost = n.surely + others
	return n
}

// memoryLimit is what the process may have, and who says so: its control group, or the machine. 0: nobody knows.
func memoryLimit() (limit settings.Bytes, of string) {
	machine, err := memlimit.FromSystem()
	if err != nil {
		machine = 0
	}
	group, err := memlimit.FromCgroup()
	if err == nil && (machine == 0 || group < machine) {
		return settings.Bytes(group), "its control group"
	}
	return settings.Bytes(machine), "the machine"
}

// against refuses a configuration that cannot fit.
func (n memoryNeeds) against(limit settings.Bytes, of string, memory settings.Bytes) error {
	if limit == 0 || n.surely <= limit {
		return nil
	}
	beside := n.surely - memory - memory/garbagePart
	fits := "no value of memory is small enough: give it more, or fewer ids to remember (streams.*.id.window.ids)"
	if left := limit - min(limit, beside); left/4*3 >= 16<<20 {
		fits = fmt.Sprintf("set memory to %s at most, or give it more", inMiB(left/(garbagePart+1)*garbagePart))
	}
	return settings.At("memory", fmt.Errorf("with %s the gateway needs %s, and %s lets it have %s; %s", inMiB(memory), inMiB(n.surely), of, inMiB(limit), fits))
}

// inMiB is b for people: rounded down to whole MiB.
func inMiB(b settings.Bytes) string { return fmt.Sprintf("%dMiB", b>>20) }

// fitsMemory says at a start what memory is needed, and refuses when there is not so much.
func (g *Gateway) fitsMemory() error {
	needs := g.cfg.memoryNeeds(runtime.GOMAXPROCS(0))
	limit, of := memoryLimit()
	if err := needs.against(limit, of, g.cfg.Memory); err != nil {
		return err
	}
	g.log.Info("memory", "needs", inMiB(needs.surely), "at_most", inMiB(needs.atMost), "limit", inMiB(limit), "limit_of", cmp.Or(of, "nobody"))
	return nil
}
