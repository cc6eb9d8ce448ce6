package plugins

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// failure is a kind of failure of a guest.
type failure uint8

const (
	trap       failure = iota // an instruction that can't be executed
	outOfFuel                 // too many instructions
	deadline                  // too much time
	stackFull                 // calls nested too deep
	noMemory                  // it asked for more memory than it may have, and then failed
	exited                    // it left through proc_exit
	badResult                 // a result that the checks refused, or a call that came back with an error
	notWritten                // no result at all
	skipped                   // it was not called, because too many of the caller's events made it trap
	suspended                 // it was not called, because too many events of too many callers made it trap
	unmade                    // it was not called, because no instance of it could be made
)

// failureNames are the words for kinds of failure in answers, logs and metrics; read only.
var failureNames = [...]string{"TRAP", "FUEL", "DEADLINE", "STACK", "OOM", "EXIT", "BAD_RESULT", "NOT_WRITTEN", "SKIPPED", "SUSPENDED", "INIT"}

// String returns the word of failureNames.
func (f failure) String() string { return failureNames[f] }

// unknownDone stands in the control block until the guest says which event it is at.
const unknownDone = ^uint32(0)

// pick chooses the events of the next call, at most that many of those that are still kept, from b.Events[from]
// on. It returns where to go on. A single event may be larger than abi.MaxData.
func (in *instance) pick(b *event.Batch, from, most int) (next int) {
	in.n, in.bytes = 0, 0
	for i := from; i < len(b.Events); i++ {
		e := &b.Events[i]
		if e.Verdict != event.Keep {
			continue
		}
		if in.n == most || in.n > 0 && in.bytes+len(e.Data) > abi.MaxData {
			return i
		}
		in.index[in.n], in.offset[in.n] = int32(i), uint32(in.bytes)
		in.n++
		in.bytes += len(e.Data)
	}
	return len(b.Events)
}

// unset is what results hold before a call; read only.
var unset = bytes.Repeat([]byte{abi.VerdictUnset}, abi.MaxEvents*abi.ResultSize)

// load copies the picked events and the request's headers to the guest, and prepares results and control block.
func (in *instance) load(b *event.Batch, flags uint32) error {
	putU32(in.view(in.control.ptr, abi.ControlSize), abi.CtlDone, unknownDone) // also when the guest fails here, what it said last is old
	if err := in.obtain(&in.data, in.bytes+abi.DataPadding); err != nil {
		return err
	}
	headers := headersSize(b.Headers)
	if err := in.obtain(&in.headers, max(headers, 1)); err != nil {
		return err
	}
	putHeaders(in.view(in.headers.ptr, headers), b.Headers)
	in.putEvents(b)
	copy(in.view(in.results.ptr, in.n*abi.ResultSize), unset)

	c := in.view(in.control.ptr, abi.ControlSize)
	clear(c)
	putU32(c, abi.CtlSize, abi.ControlSize)
	putU32(c, abi.CtlCount, uint32(in.n))
	putU32(c, abi.CtlDone, unknownDone)
	putU32(c, abi.CtlData, in.data.ptr)
	putU32(c, abi.CtlDataLen, uint32(in.bytes))
	putU32(c, abi.CtlEvents, in.events.ptr)
	putU32(c, abi.CtlResults, in.results.ptr)
	binary.LittleEndian.PutUint64(c[abi.CtlNow:], uint64(b.Arrived))
	if b.Trial {
		flags |= abi.FlagDryRun
	}
	putU32(c, abi.CtlFlags, flags)
	putU32(c, abi.CtlStream, streamNumber(b.Stream))
	putU32(c, abi.CtlHeader, in.headers.ptr)
	putU32(c, abi.CtlHeaderLen, uint32(headers))
	putU32(c, abi.CtlBudget, uint32(in.budget()))
	return nil
}

func (in *instance) putEvents(b *event.Batch) {
	data := in.view(in.data.ptr, in.bytes+abi.DataPadding)
	descriptors := in.view(in.events.ptr, in.n*abi.EventSize)
	for i, at := range in.index[:in.n] {
		n := copy(data[in.offset[i]:], b.Events[at].Data)
		putU32(descriptors, i*abi.EventSize+abi.EventOffset, in.offset[i])
		putU32(descriptors, i*abi.EventSize+abi.EventLength, uint32(n))
	}
	clear(data[in.bytes:])
}

// streamNumber is FNV-1a, 32 bits.
func streamNumber(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// budget is how many bytes the replaced values of the call may have together.
func (in *instance) budget() int { return abi.OutputFactor*in.bytes + abi.OutputExtra }

// done is the event the guest was at when it trapped; ok is false when it did not say, or said nonsense.
func (in *instance) done() (event int, ok bool) {
	d := u32(in.view(in.control.ptr, abi.ControlSize), abi.CtlDone)
	return int(d), uint64(d) < uint64(in.n)
}

// failureOf names what ended a call.
func (in *instance) failureOf(err error) failure {
	var left exit
	var stopped halted
	switch {
	case errors.As(err, &stopped):
		return stopped.kind
	case in.linear.refused:
		return noMemory
	case errors.As(err, &left):
		return exited
	case strings.Contains(err.Error(), "stack overflow"):
		return stackFull
	}
	return trap
}
