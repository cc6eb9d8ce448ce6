package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// ID says where the id of an event is found, by which a repetition is recognised; at most one of the first four is
// set. A CloudEvent has an id always, and a source.
type ID struct {
	JSON   string   `json:"json,omitempty"`   // JSON pointer into the event (RFC 6901)
	Header string   `json:"header,omitempty"` // request header
	CE     string   `json:"ce,omitempty"`     // "id": CloudEvents only, which is what happens without any setting
	None   bool     `json:"none,omitempty"`   // repetitions are not looked for, of CloudEvents neither
	Window IDWindow `json:"window"`
}

// UnmarshalText reads the short form `id: none`.
func (c *ID) UnmarshalText(text []byte) error {
	if string(text) != "none" {
		return fmt.Errorf("%q is no id; write {json: /pointer}, {header: name}, {ce: id} or none", text)
	}
	*c = ID{None: true}
	return nil
}

// IDWindow bounds the ids that are remembered.
type IDWindow struct {
	IDs int               `json:"ids"` // the oldest are forgotten first when there are more
	Age settings.Duration `json:"age"` // after their event was safe
}

// maxIDs bounds the ids of a stream: 320 MB.
const maxIDs = 10_000_000

// Extractor is what finds the ids of events.
func (c *ID) Extractor() builtin.ID {
	return builtin.ID{JSON: c.JSON, Header: strings.ToLower(c.Header)}
}

func (c *ID) problem(eventsOfRequest int) error {
	all := []error{
		c.Extractor().Validate(),
		mustBe(c.CE == "" || c.CE == "id", "ce: the attribute is id, not %q", c.CE),
	}
	set := 0
	for _, one := range []bool{c.JSON != "", c.Header != "", c.CE != "", c.None} {
		if one {
			set++
		}
	}
	all = append(all, mustBe(set <= 1, "set one of json, header, ce and none"))
	least := max(eventsOfRequest, 1)
	if c.JSON == "" && c.Header == "" {
		least = 1
	}
	all = append(all,
		mustBe(c.Window.IDs >= least && c.Window.IDs <= maxIDs, "window.ids: must be %d (limits.events) to %d, got %d", least, maxIDs, c.Window.IDs),
		mustBe(c.Window.Age >= settings.Duration(time.Second), "window.age: must be at least 1s, got %s", time.Duration(c.Window.Age)))
	return errors.Join(all...)
}
