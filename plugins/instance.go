package plugins

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/abi"
)

// instance is a running guest with the regions that batches are handed over in. It belongs to one goroutine at
// a time, and only its owner closes it: closing frees the memory that a call may be using.
type instance struct {
	mod    api.Module
	mem    api.Memory
	linear *linear
	guest  *guest
	ctx    context.Context // carries the guest to the host functions, and no deadline: nothing could enforce it

	process, alloc, free api.Function // looking one up costs more than calling it; free is nil for none
	stack                [2]uint64    // parameters and results of calls

	control, data, events, results, headers region

	scanner *jsonscan.Scanner // for replaced values

	calls int // with events

	// The events of the current call.
	index  [abi.MaxEvents]int32  // where each is in the batch
	offset [abi.MaxEvents]uint32 // where each is in data
	n      int
	bytes  int
}

// region is a part of the guest's memory that it gave for our use.
type region struct{ ptr, size uint32 }

// Sizes of regions at the start; data and headers grow when a batch needs it.
const (
	firstData    = 128 << 10
	firstHeaders = 16 << 10
)

func newInstance(mod api.Module, mem *linear, g *guest) *instance {
	return &instance{
		mod: mod, mem: mod.Memory(), linear: mem, guest: g,
		ctx:     context.WithValue(context.Background(), guestKey{}, g),
		process: mod.ExportedFunction(abi.ExportProcess),
		alloc:   mod.ExportedFunction(abi.ExportAlloc),
		free:    mod.ExportedFunction(abi.ExportFree),
	}
}

// An instance that has come to more than three quarters of its memory is replaced between two calls, unless it got there so
// fast that it seems to need that much: then one that runs out of memory is replaced, see step.inherited.
const (
	seldom        = 16 // calls
	highWater     = 3
	highWaterOver = 4
)

// leaking reports whether the instance is to be replaced before it runs out of memory.
func (in *instance) leaking() bool {
	return in.calls >= seldom && uint64(in.mem.Size())*highWaterOver > in.linear.limit*highWater
}

// close frees the instance and its memory.
func (in *instance) close() {
	in.guest.flush(levelOf(abi.LevelWarn))
	in.mod.Close(in.ctx) // its error can only be about files, and a guest has none
}

// layOut asks the guest for the regions.
func (in *instance) layOut() error {
	for _, r := range []struct {
		region *region
		size   int
	}{
		{&in.control, abi.ControlSize},
		{&in.events, abi.MaxEvents * abi.EventSize},
		{&in.results, abi.MaxEvents * abi.ResultSize},
		{&in.data, firstData + abi.DataPadding},
		{&in.headers, firstHeaders},
	} {
		if err := in.obtain(r.region, r.size); err != nil {
			return err
		}
	}
	return nil
}

// obtain makes r at least size bytes large; its content is lost. Regions grow in powers of two.
func (in *instance) obtain(r *region, size int) error {
	if uint64(size) <= uint64(r.size) {
		return nil
	}
	if in.free != nil && r.size > 0 {
		if _, err := in.call(in.free, uint64(r.ptr), uint64(r.size)); err != nil {
			return fmt.Errorf("%s: %w", abi.ExportFree, err)
		}
	}
	want := uint32(1) << bits.Len32(uint32(size-1))
	*r = region{}
	ptr, err := in.call(in.alloc, uint64(want), abi.Alignment)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", abi.ExportAlloc, err)
	case ptr == 0 || ptr%abi.Alignment != 0 || uint64(ptr)+uint64(want) > uint64(in.mem.Size()):
		return fmt.Errorf("%s(%d, %d) returned %d: not an aligned region within the memory of %d bytes",
			abi.ExportAlloc, want, abi.Alignment, ptr, in.mem.Size())
	}
	// What overlaps would let our own writing stand for what the guest writes: an event could count as kept without a verdict.
	for _, other := range []*region{&in.control, &in.events, &in.results, &in.data, &in.headers} {
		if other != r && uint64(ptr) < uint64(other.ptr)+uint64(other.size) && uint64(other.ptr) < uint64(ptr)+uint64(want) {
			return fmt.Errorf("%s(%d, %d) returned %d: it overlaps the region of %d bytes at %d that it returned before and that is still in use",
				abi.ExportAlloc, want, abi.Alignment, ptr, other.size, other.ptr)
		}
	}
	*r = region{ptr, want}
	return nil
}

// call runs a function and returns its result, if it has one.
func (in *instance) call(f api.Function, params ...uint64) (uint32, error) {
	copy(in.stack[:], params)
	in.linear.refused = false
	in.guest.start()
	err := f.CallWithStack(in.ctx, in.stack[:])
	in.guest.leave()
	if err != nil {
		return 0, err
	}
	return uint32(in.stack[0]), nil
}

func (in *instance) capabilities() (uint32, error) {
	set, err := in.call(in.mod.ExportedFunction(abi.ExportVersion))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", abi.ExportVersion, firstLine(err))
	}
	return set, nil
}

// configure hands the step's configuration over. A guest without abi.ExportInit has none.
func (in *instance) configure(config []byte) error {
	f := in.mod.ExportedFunction(abi.ExportInit)
	if f == nil {
		return nil
	}
	var r region
	if err := in.obtain(&r, max(len(config), 1)); err != nil {
		return firstLine(err)
	}
	copy(in.view(r.ptr, len(config)), config)
	status, err := in.call(f, uint64(r.ptr), uint64(len(config)))
	if err == nil && status != 0 {
		err = fmt.Errorf("it returned %d", int32(status))
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", abi.ExportInit, firstLine(err), in.guest.lastLine())
	}
	return nil
}

// view returns n bytes of the guest's memory, which obtain made sure are there. The next call ends its life.
func (in *instance) view(ptr uint32, n int) []byte {
	p, ok := in.mem.Read(ptr, uint32(n))
	if !ok {
		panic("BUG: plugins: a region outside of the guest's memory")
	}
	return p
}

// memory returns all of the guest's memory. The next call ends its life.
func (in *instance) memory() []byte { return in.view(0, int(in.mem.Size())) }

func firstLine(err error) error {
	if text, _, more := strings.Cut(err.Error(), "\n"); more {
		return errors.New(text)
	}
	return err
}
