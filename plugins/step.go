package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Step is one plugin of a chain.
type Step struct {
	Name    string // of the plugin, as in answers, logs and metrics
	Module  *Module
	Config  []byte // handed to the guest as it is, by custom a JSON object; a guest without abi.ExportInit never sees it
	OnError Policy
	Stage   Stage
	Percent int // of the producers, for Canary

	Suspended bool // it is not called: all events go by OnError

	apart bool // one instance, which no metric knows of
}

// step is a Step that runs.
type step struct {
	Step
	rules    Rules
	outside  *surroundings
	deadline time.Duration // of a call
	bill     *bill
	bills    *bills
	pool     *pool
	cost     *cost
	health   health
	tripped  func(reason string)       // is told when the version is suspended
	details  [len(failureNames)]string // what clients are told
}

func (h *Host) newStep(ctx context.Context, cfg Step, rules Rules) (*step, error) {
	if !cfg.Module.refs.acquire() {
		return nil, fmt.Errorf("plugin %s: its module was closed", cfg.Name)
	}
	s := &step{Step: cfg, rules: rules, deadline: h.cfg.Deadline, bills: &h.metrics.bills, cost: &cost{}}
	s.OnError = cfg.OnError.of(cfg.Module.Capabilities)
	instances, spare := h.cfg.Instances, cfg.Module.slowStart()
	if s.onCopies() {
		s.OnError = Policy{Action: DeadLetter} // so that what it fails on can be told from what it does
		instances, spare = 1, false
	}
	for kind, name := range failureNames {
		s.details[kind] = fmt.Sprintf("plugin %s failed on this event: %s (version %s)", cfg.Name, name, shortDigest(cfg.Module.Digest))
	}
	s.details[skipped] = fmt.Sprintf("plugin %s was not called for this event: SKIPPED, it failed on too many others of this caller; send it again later (version %s)",
		cfg.Name, shortDigest(cfg.Module.Digest))
	s.details[suspended] = fmt.Sprintf("plugin %s was not called for this event: SUSPENDED, it failed on too many events (version %s)", cfg.Name, shortDigest(cfg.Module.Digest))
	s.details[unmade] = fmt.Sprintf("plugin %s was not called for this event: INIT, no instance of it can be made (version %s)", cfg.Name, shortDigest(cfg.Module.Digest))
	s.health.suspended.Store(cfg.Suspended)
	s.tripped = func(string) {}
	if cfg.apart {
		s.bills, instances = &bills{all: map[version]*bill{}}, 1
	}
	s.bill = s.bills.open(s.version())
	s.outside = &surroundings{log: cfg.Module.logger(h.log).With("plugin", cfg.Name), bill: s.bill}
	if cfg.Stage != Active {
		s.outside.log = s.outside.log.With("stage", cfg.Stage.String())
	}
	if !cfg.apart {
		s.outside.tell = func(level slog.Level, guest bool, text string) { h.journals.add(s.version(), level, guest, text) }
	}
	s.pool = newPool(instances, s.newInstance)
	s.pool.making.allow, s.pool.making.failed = s.bill.poison.replace, s.sayUnmade
	if cfg.Suspended { // nobody calls it, and perhaps it can't be made
		s.pool.empty = instances
		return s, nil
	}
	if err := s.pool.fill(ctx, spare); err != nil {
		s.close()
		s.outside.note(slog.LevelError, "does not start with this configuration: %v", err)
		return nil, event.Problemf(event.PluginRefused, "plugin %s with this configuration: %v", cfg.Name, err)
	}
	return s, nil
}

func (s *step) newInstance(ctx context.Context) (*instance, error) {
	in, err := s.Module.instantiate(ctx, s.outside)
	if err != nil {
		return nil, err
	}
	if err := in.configure(s.Config); err != nil {
		in.close()
		return nil, err
	}
	in.guest.settled()
	in.scanner = jsonscan.New(s.rules.MaxDepth, s.rules.Watch)
	in.scanner.PassUTF8 = s.rules.PassUTF8
	return in, nil
}

func (s *step) version() version {
	return version{s.Name, shortDigest(s.Module.Digest), s.Stage.String()}
}

// onCopies reports whether the step processes copies, for which nobody waits.
func (s *step) onCopies() bool { return s.Stage == Shadow || s.Stage == reference }

// same reports whether the steps are the same version in the same stage.
func (s *step) same(o *step) bool {
	return s.Name == o.Name && s.Stage == o.Stage && s.Module.Digest == o.Module.Digest && bytes.Equal(s.Config, o.Config)
}

// close frees the instances; none may be in use.
func (s *step) close() error {
	s.pool.close()
	s.bills.close(s.version())
	return s.Module.refs.release()
}

// process runs the plugin over the events of b that are still kept. Between two calls it lets other callers go first whose
// turn it is.
func (s *step) process(ctx context.Context, b *event.Batch) error {
	if s.health.suspended.Load() {
		s.skip(b, 0, suspended)
		return nil
	}
	for at := (stretch{}); at.from < len(b.Events); {
		if s.bill.poison.over(b.Owner) { // and has none made for it
			s.skip(b, at.from, skipped)
			return nil
		}
		in, err := s.pool.take(ctx, b.Owner)
		if cause, ok := errors.AsType[*notMade](err); ok {
			s.giveUp(b, at.from, cause)
			return nil
		}
		if err != nil {
			return s.unavailable(err)
		}
		in, err = s.work(ctx, in, b, &at)
		if in != nil && in.leaking() {
			var done bool
			if in, done = s.pool.renew(in, b.Owner); done {
				s.bill.replacements.Add(1)
			}
		}
		s.pool.give(in)
		if err != nil {
			return err
		}
	}
	return nil
}

// stretch is how far a batch has come.
type stretch struct {
	from  int    // the event to go on at
	alone int    // events before this one come one a call, because a guest trapped and did not say where
	flags uint32 // of the next call
}

// work calls the guest until each kept event from b.Events[at.from] on had its turn, or somebody else's turn has come. After a
// trap the results before it stand, the event to blame goes by the policy, and another instance goes on behind it; or at it,
// when earlier events may be to blame (see inherited). work returns the instance that is then in use, nil when there is none,
// and moves at. Once ctx has ended, the batch is given up at the next trap.
func (s *step) work(ctx context.Context, in *instance, b *event.Batch, at *stretch) (*instance, error) {
	for {
		most := abi.MaxEvents
		if at.from < at.alone {
			most = 1
		}
		next := in.pick(b, at.from, most)
		if in.n == 0 {
			at.from = len(b.Events)
			return in, nil
		}
		if unpaid := b.Unpaid(); unpaid != nil { // what one call makes is bounded
			return in, unpaid
		}
		if s.bill.poison.over(b.Owner) {
			s.skip(b, at.from, skipped)
			at.from = len(b.Events)
			return in, nil
		}
		if (at.flags != 0 || s.onCopies()) && ctx.Err() != nil {
			return in, s.unavailable(errors.New("it trapped until the deadline"))
		}
		s.tether(ctx, in)
		err := s.call(in, b, at.flags)
		in.guest.of = nil
		othersTurn := s.pool.spend(b.Owner, in)
		if err == nil {
			if at.from, at.flags = next, 0; othersTurn && at.from >= at.alone {
				return in, nil
			}
			continue
		}
		if in.guest.late {
			in.close()
			return nil, s.unavailable(errors.New("the request has no more time for it"))
		}
		if in = s.another(in, b, at, trapped{err, next}); in == nil {
			return nil, nil
		}
	}
}

// trapped is how a call ended, of the events before next.
type trapped struct {
	err  error
	next int
}

// another returns an instance in place of one that trapped, nil when it can't or may not be made, and moves at behind the event
// to blame. What making it takes is charged to the caller whose event it was, as far as it is known before it begins: so that
// who has it made again and again with many requests at once is stopped by the first.
func (s *step) another(in *instance, b *event.Batch, at *stretch, how trapped) *instance {
	blamed, expected := false, time.Duration(s.pool.making.cost.Load())
	if i, ok := s.inherited(in, b, how.err); ok {
		at.from = i
	} else {
		blamed = true
		if i, ok := s.blame(in, b, how.err); ok {
			at.from = i + 1
		} else {
			at.alone = how.next
		}
		s.bill.poison.trapped(b.Owner, in.guest.cost()+expected)
		if !s.bill.poison.replace(b.Owner) {
			in.close() // the next batch makes one
			s.skip(b, at.from, skipped)
			at.from = len(b.Events)
			return nil
		}
	}
	at.flags = abi.FlagReplay
	began := time.Now()
	in, err := s.pool.replace(in, b.Owner)
	took := time.Since(began)
	if err == nil {
		s.bill.replacements.Add(1)
		took = in.guest.setUp
	}
	if blamed {
		s.bill.poison.charge(b.Owner, took-expected)
	}
	return in
}

// tether gives the next calls of in their time.
func (s *step) tether(ctx context.Context, in *instance) {
	in.guest.limit, in.guest.rest, in.guest.of = s.deadline, 0, ctx
	if until, ok := ctx.Deadline(); ok {
		in.guest.rest = max(time.Until(until), 1)
	}
}

// call hands the picked events over and takes the results. The error is a trap: nothing was taken.
func (s *step) call(in *instance, b *event.Batch, flags uint32) error {
	in.calls++
	if err := in.load(b, flags); err != nil {
		return err
	}
	began := time.Now()
	status, err := in.call(in.process, uint64(in.control.ptr))
	took := time.Since(began) - in.guest.waited
	s.bill.called(took, in.mem.Size())
	if in.guest.waited > 0 {
		s.bill.waited.Add(int64(in.guest.waited))
	}
	s.cost.add(took, in.n)
	if err != nil {
		return err
	}
	s.health.called(b.Owner, in.n)
	if status == 0 {
		s.apply(b, in, in.n)
		return nil
	}
	for _, at := range in.index[:in.n] {
		s.fail(b, at, badResult)
	}
	s.bill.count(tally{failed: in.n})
	return nil
}

// inherited tells whether what the guest failed of may be what earlier events left in its memory, so that no event is to
// blame yet: it ran out of memory while it was not working on its first event, or trapped on the first one of a call that was
// not its first: by an instruction, by leaving as Go does when it panics, or by nesting too deep. The latter costs one of the
// version's replacements. It takes the results before over, and returns the
// position in the batch of the event to go on at, on an instance that has inherited nothing.
func (s *step) inherited(in *instance, b *event.Batch, err error) (at int, ok bool) {
	i, known := in.done()
	if !known {
		i = 0
	}
	kind := in.failureOf(err)
	switch {
	case in.calls == 1 && i == 0:
		return 0, false
	case kind == noMemory:
	case i == 0 && (kind == trap || kind == exited || kind == stackFull) && s.bill.poison.replace(b.Owner):
	default:
		return 0, false
	}
	if s.outside.allow() {
		s.outside.log.Info("plugin failed, perhaps of what earlier events left in its memory; another instance takes over",
			"kind", kind.String(), "calls", in.calls, "bytes", in.mem.Size())
		s.outside.note(slog.LevelInfo, "failed with %s, perhaps of what earlier events left in its memory of %d bytes; another instance takes over",
			kind, in.mem.Size())
	}
	s.apply(b, in, i)
	return int(in.index[i]), true
}

// blame takes the results before the trap over and fails the event that caused it, whose position in the batch it
// returns; ok is false when that is not known, and then nothing was taken.
func (s *step) blame(in *instance, b *event.Batch, err error) (at int, ok bool) {
	kind := in.failureOf(err)
	i, ok := in.done()
	if !ok && in.n > 1 {
		return 0, false
	}
	if !ok {
		i = 0
	}
	at = int(in.index[i])
	if s.outside.allow() {
		s.outside.log.Warn("plugin failed on an event", "kind", kind.String(), "index", at, "error", firstLine(err))
		s.outside.note(slog.LevelWarn, "failed with %s on event %d of a request: %v", kind, at, firstLine(err))
	}
	s.apply(b, in, i)
	s.fail(b, int32(at), kind)
	s.bill.count(tally{failed: 1})
	if reason := s.health.trapped(b.Owner, i); reason != "" && !s.onCopies() {
		s.tripped(reason)
	}
	return at, true
}

// skip fails all events that are still kept, from b.Events[from] on, and returns how many.
func (s *step) skip(b *event.Batch, from int, why failure) (n int) {
	for i := from; i < len(b.Events); i++ {
		if b.Events[i].Verdict == event.Keep {
			s.fail(b, int32(i), why)
			n++
		}
	}
	s.bill.count(tally{failed: n})
	return n
}

// fail does with an event what the policy says.
func (s *step) fail(b *event.Batch, at int32, kind failure) {
	s.bill.failures[kind].Add(1)
	switch s.OnError.Action {
	case Pass:
		b.Failed(int(at), s.details[kind])
	case DefaultKey:
		b.Failed(int(at), s.details[kind])
		b.Events[at].Key, b.Events[at].HasKey = s.OnError.Key, true
	case DeadLetter:
		b.SetAside(event.Letter{Index: int(at), Code: event.PluginFailed, Detail: s.details[kind], Plugin: s.Name, Digest: s.Module.Digest})
	default:
		b.Reject(int(at), event.PluginFailed, s.details[kind])
	}
}

// reason is what the client is told of an event that the guest rejected; empty when the answer is full of others.
func (s *step) reason(b *event.Batch, code uint8) string {
	if b.Full() {
		return ""
	}
	return fmt.Sprintf("plugin %s refused this event%s%d", s.Name, reasonMark, code)
}

// reasonMark is what stands before the reason.
const reasonMark = ": reason "

func (s *step) unavailable(err error) error {
	return event.Problemf(event.Overloaded, "plugin %s: %v; try again later", s.Name, err)
}
