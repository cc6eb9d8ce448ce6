package config

import (
	"fmt"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
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

// Needs is what memory a configuration needs, and what it may come to.
type Needs struct {
	Surely settings.Bytes // under load, whatever is sent
	AtMost settings.Bytes // when all that is bounded is at its bound at once
}

// MemoryNeeds adds up. Surely needed are the process, what memory bounds with its garbage, what the keys of streams are counted in,
// and the ids of streams that have them in every event; the rest is bounds that few ever come near: connections, instances of plugins, keys of requests, a full spool.
func (c *Config) MemoryNeeds(processors int) (n Needs) {
	n.Surely = processBytes + c.Memory + c.Memory/garbagePart
	others := settings.Bytes(0)
	for _, s := range c.Streams {
		ids := settings.Bytes(s.ID.Window.IDs) * idBytes
		switch {
		case s.ID.None:
		case s.ID.JSON != "" || s.ID.Header != "":
			n.Surely += ids
		default: // of CloudEvents alone
			others += ids
		}
		least, most := partitioner.MeterSize(max(1, s.Partitions.Max), processors)
		n.Surely += settings.Bytes(least)
		others += settings.Bytes(most - least)
		others += settings.Bytes(len(s.Plugins)*min(processors, 8)) * c.Plugins.Memory
		others += framesIndexed * frameIndexBytes
	}
	others += settings.Bytes(c.HTTP.MaxConnections) * connectionBytes
	others += settings.Bytes(c.Idempotency.Keys) * onceBytes
	n.AtMost = n.Surely + others
	return n
}

// MemoryLimit is what the process may have, and who says so: its control group, or the machine. 0: nobody knows.
func MemoryLimit() (limit settings.Bytes, of string) {
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

// Against refuses a configuration that cannot fit.
func (n Needs) Against(limit settings.Bytes, of string, memory settings.Bytes) error {
	if limit == 0 || n.Surely <= limit {
		return nil
	}
	beside := n.Surely - memory - memory/garbagePart
	fits := "no value of memory is small enough: give it more, or fewer ids to remember (streams.*.id.window.ids)"
	if left := limit - min(limit, beside); left/4*3 >= 16<<20 {
		fits = fmt.Sprintf("set memory to %s at most, or give it more", InMiB(left/(garbagePart+1)*garbagePart))
	}
	return settings.At("memory", fmt.Errorf("with %s the gateway needs %s, and %s lets it have %s; %s", InMiB(memory), InMiB(n.Surely), of, InMiB(limit), fits))
}

// InMiB is b for people: rounded down to whole MiB.
func InMiB(b settings.Bytes) string { return fmt.Sprintf("%dMiB", b>>20) }
