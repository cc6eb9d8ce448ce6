package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// Purge says what goes: what was stored before Before, and, with Count, all but the newest Keep messages. A lane's last
// message stays in any case.
type Purge struct {
	Before time.Time // zero: nothing goes by age
	Count  bool
	Keep   uint64
}

// Purge removes messages of a stream, spread over so many, at once, and returns how many have gone. Of a stream that is
// spread each share keeps its part of p.Keep, rounded up.
func (k *Keeper) Purge(ctx context.Context, stream string, spread int, p Purge) (gone uint64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := uint64(max(1, spread))
	for i := range int(n) {
		s, err := k.js.Stream(ctx, storeName(stream, i))
		if errors.Is(err, js.ErrStreamNotFound) {
			return gone, fmt.Errorf("%s: %w", stream, ErrNoStream)
		}
		if err != nil {
			return gone, fmt.Errorf("purge %s: %w", stream, err)
		}
		share := shelf{k: k, info: s.CachedInfo(), stream: s}
		below, err := share.below(ctx, p.Before)
		if err == nil && p.Count {
			var count uint64
			count, err = share.newest(ctx, (p.Keep+n-1)/n)
			below = max(below, count)
		}
		if err == nil {
			_, err = share.clear(ctx, below, int(^uint(0)>>1))
		}
		gone += share.gone
		if err != nil {
			return gone, fmt.Errorf("purge %s: %w", stream, err)
		}
	}
	return gone, nil
}

// clear removes what retention says of one stream, in at most so many lanes, and returns in how many it did.
func (k *Keeper) clear(ctx context.Context, info *js.StreamInfo, before time.Time, lanes int) (done int, err error) {
	old := info.State.FirstTime.Before(before)
	full := k.cfg.Oldest && info.Config.MaxBytes > 0 && int64(info.State.Bytes) > info.Config.MaxBytes/16*15
	if lanes <= 0 || info.State.Msgs == 0 || !old && !full {
		return 0, nil
	}
	stream, err := k.js.Stream(ctx, info.Config.Name)
	if err != nil {
		return 0, err
	}
	s := shelf{k: k, info: stream.CachedInfo(), stream: stream}
	below := uint64(0)
	if old {
		below, err = s.below(ctx, before)
	}
	if err == nil && full {
		below, err = s.spare(ctx, below)
	}
	if err == nil {
		done, err = s.clear(ctx, below, lanes)
	}
	if err != nil {
		return done, fmt.Errorf("clear %s: %w", info.Config.Name, err)
	}
	if s.gone > 0 {
		k.log.Info("old runs removed", "stream", info.Config.Name, "runs", s.gone, "too_old", old, "full", full)
	}
	if full && s.gone == 0 && !k.warned[info.Config.Name] {
		k.warned[info.Config.Name] = true
		k.log.Warn("a stream is full and has nothing but the last run of each lane", "stream", info.Config.Name)
	}
	return done, nil
}

// spare returns the sequence below which a full stream can spare what is there: a 16th of its messages, besides the last
// ones of its lanes, which may all be among the oldest.
func (s *shelf) spare(ctx context.Context, below uint64) (uint64, error) {
	state := &s.info.State
	spared := max(1, state.Msgs/16) + state.NumSubjects
	count, err := s.newest(ctx, state.Msgs-min(state.Msgs, spared))
	return max(below, count), err
}

// shelf is one JetStream stream that is cleared.
type shelf struct {
	k      *Keeper
	info   *js.StreamInfo
	stream js.Stream
	gone   uint64 // messages removed so far
}

// glance makes a consumer that only looks, without the data, and takes it away again.
func (s *shelf) glance(ctx context.Context, cfg js.ConsumerConfig, look func(js.Consumer) error) error {
	cfg.AckPolicy, cfg.MemoryStorage, cfg.HeadersOnly, cfg.InactiveThreshold = js.AckNonePolicy, true, true, abandoned
	cfg.Replicas = 1
	c, err := s.stream.CreateConsumer(ctx, cfg)
	if err != nil {
		return err
	}
	err = look(c)
	return errors.Join(err, s.stream.DeleteConsumer(ctx, c.CachedInfo().Name))
}

// below returns the sequence below which all messages were stored before t.
func (s *shelf) below(ctx context.Context, t time.Time) (seq uint64, err error) {
	if t.IsZero() || s.info.State.Msgs == 0 || !s.info.State.FirstTime.Before(t) {
		return 0, nil
	}
	err = s.glance(ctx, js.ConsumerConfig{DeliverPolicy: js.DeliverByStartTimePolicy, OptStartTime: &t}, func(c js.Consumer) error {
		seq = c.CachedInfo().Delivered.Stream + 1 // it would begin here
		return nil
	})
	return seq, err
}

// newest returns the sequence from which on there are the newest n messages: found by halving, since removed messages
// leave holes.
func (s *shelf) newest(ctx context.Context, n uint64) (uint64, error) {
	low, high := s.info.State.FirstSeq, s.info.State.LastSeq+1 // from low on there are too many, from high on not
	for low+1 < high {
		middle := low + (high-low)/2
		err := s.glance(ctx, js.ConsumerConfig{DeliverPolicy: js.DeliverByStartSequencePolicy, OptStartSeq: middle}, func(c js.Consumer) error {
			if c.CachedInfo().NumPending > n {
				low = middle
			} else {
				high = middle
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if s.info.State.Msgs <= n {
		return 0, nil
	}
	return high, nil
}

// end is the last message of a lane.
type end struct {
	subject string
	seq     uint64
}

// ends returns the last message of each lane as it is now. A lane may grow meanwhile, which only makes it safer.
func (s *shelf) ends(ctx context.Context) (all []end, err error) {
	cfg := js.ConsumerConfig{DeliverPolicy: js.DeliverLastPerSubjectPolicy, FilterSubjects: s.info.Config.Subjects}
	err = s.glance(ctx, cfg, func(c js.Consumer) error {
		pending := int(c.CachedInfo().NumPending)
		for len(all) < pending {
			batch, err := c.Fetch(min(pending-len(all), lanesAtOnce), js.FetchMaxWait(idle))
			if err != nil {
				return err
			}
			before := len(all)
			for msg := range batch.Messages() {
				meta, err := msg.Metadata()
				if err != nil {
					return err
				}
				all = append(all, end{msg.Subject(), meta.Sequence.Stream})
			}
			if batch.Error() != nil || len(all) == before {
				return batch.Error() // the rest has gone meanwhile
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b end) int { return cmp.Compare(a.subject, b.subject) })
	return all, err
}

// clear removes what lies below a sequence, but for the last message of each lane, in at most so many lanes.
func (s *shelf) clear(ctx context.Context, below uint64, lanes int) (done int, err error) {
	if below <= s.info.State.FirstSeq {
		return 0, nil
	}
	all, err := s.ends(ctx)
	if err != nil {
		return 0, err
	}
	for _, lane := range all {
		to := min(below, lane.seq)
		if s.k.cleared[lane.subject] == to {
			continue
		}
		if done == lanes {
			break
		}
		if err := s.remove(ctx, lane.subject, to); err != nil {
			return done, err
		}
		s.k.cleared[lane.subject] = to
		done++
	}
	return done, nil
}

// remove takes away the messages of a subject below a sequence.
func (s *shelf) remove(ctx context.Context, subject string, below uint64) error {
	body, err := json.Marshal(struct {
		Subject string `json:"filter"`
		Below   uint64 `json:"seq"`
	}{subject, below})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	reply, err := s.k.nc.RequestWithContext(ctx, "$JS.API.STREAM.PURGE."+s.info.Config.Name, body)
	if err != nil {
		return err
	}
	var answer struct {
		Error  *js.APIError `json:"error"`
		Purged uint64       `json:"purged"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	s.gone += answer.Purged
	return nil
}
