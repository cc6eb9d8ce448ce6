package config

import (
	"errors"
	"time"

	"github.com/headgate-io/headgate/internal/settings"
)

// Spool bounds what is kept of frames until their backends have confirmed them.
type Spool struct {
	MaxBytes settings.Bytes `json:"max_bytes"` // of all streams together, one may have half; default: 20 GiB, or half of what is free
	Tail     Tail           `json:"tail"`
}

// Tail bounds what is kept of frames that a backend has confirmed, for the case that it loses them.
type Tail struct {
	Bytes settings.Bytes    `json:"bytes"` // of each stream
	Age   settings.Duration `json:"age"`
}

func (c *Spool) problem() error {
	return errors.Join(settings.At("max_bytes", mustBe(c.MaxBytes == 0 || c.MaxBytes >= 1<<20, "must be at least 1MiB, got %s", c.MaxBytes)),
		settings.At("tail.bytes", mustBe(c.Tail.Bytes >= 1<<16, "must be at least 64KiB, got %s; backends.NAME.jetstream.tail: off keeps none", c.Tail.Bytes)),
		settings.At("tail.age", mustBe(time.Duration(c.Tail.Age) >= time.Second, "must be at least 1s")))
}
