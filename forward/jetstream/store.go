package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	js "github.com/nats-io/nats.go/jetstream"
)

// SpreadError says that a stream was made to be spread over another number of streams, so that lanes would lose their
// chains.
type SpreadError struct {
	Stream       string
	Found, Asked string
}

// Error names both numbers.
func (e *SpreadError) Error() string {
	return fmt.Sprintf("%s was made with streams: %s and cannot go on with %s; set it back, or use another stream", e.Stream, e.Found, e.Asked)
}

func ensure(ctx context.Context, api js.JetStream, cfg Config, k int) error {
	stream, err := api.Stream(ctx, storeName(cfg.Stream, k))
	if errors.Is(err, js.ErrStreamNotFound) {
		if _, err = api.CreateStream(ctx, definition(js.StreamConfig{MaxBytes: cfg.MaxBytes}, cfg, k)); isFull(err) {
			return errors.Join(ErrFull, err)
		}
		return err
	}
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	asked := strconv.Itoa(cfg.Streams)
	if found := cmp.Or(info.Config.Metadata[spreadKey], "1"); found != asked {
		return &SpreadError{Stream: info.Config.Name, Found: found, Asked: asked}
	}
	want := definition(info.Config, cfg, k)
	if reflect.DeepEqual(want, info.Config) {
		return nil
	}
	_, err = api.UpdateStream(ctx, want)
	return err
}

// spreadKey is where a JetStream stream says over how many its stream is spread; absent on those that are alone.
const spreadKey = "headgate.streams"

// definition sets what we decide of a stream and leaves its size, an operator's placement and the like alone. There is
// no MaxAge: messages go by our own purge, which keeps the last one of each lane.
func definition(c js.StreamConfig, cfg Config, k int) js.StreamConfig {
	c.Name = storeName(cfg.Stream, k)
	c.Subjects = subjects(cfg, k)
	c.Storage = js.FileStorage
	c.Retention = js.LimitsPolicy
	c.Discard = js.DiscardNew // an update to fewer bytes drops nothing either
	c.MaxAge = 0
	c.Replicas = cfg.Replicas
	c.Duplicates = duplicateWindow
	c.AllowMsgTTL = true // for SEAL markers, which say that they never expire
	c.AllowDirect = true
	if cfg.Streams > 1 {
		c.Metadata = maps.Clone(c.Metadata)
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[spreadKey] = strconv.Itoa(cfg.Streams)
	}
	return c
}
