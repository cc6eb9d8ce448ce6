package plugins

import (
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Action is what becomes of an event on which a plugin failed.
type Action uint8

// ByKind is the zero value and the default.
const (
	ByKind     Action = iota // DeadLetter for a plugin that sets keys and drops nothing, Reject for any other
	Reject                   // the client is told plugin_failed
	Pass                     // goes on as it was before, with key and bytes unchanged
	DefaultKey               // goes on with Policy.Key
	DeadLetter               // is set aside, see event.Batch.SetAside
)

// Policy is a step's on_error.
type Policy struct {
	Action Action
	Key    []byte // for DefaultKey
}

// ParsePolicy reads the words of the configuration: reject, pass, deadletter, or default_key with its key;
// empty is ByKind. Others give an *event.Problem with code bad_configuration.
func ParsePolicy(word, key string) (Policy, error) {
	switch word {
	case "":
		return Policy{}, nil
	case "reject":
		return Policy{Action: Reject}, nil
	case "pass":
		return Policy{Action: Pass}, nil
	case "deadletter":
		return Policy{Action: DeadLetter}, nil
	case "default_key":
		return Policy{Action: DefaultKey, Key: []byte(key)}, nil
	}
	return Policy{}, event.Problemf(event.BadConfiguration, "on_error %q: it is reject, pass, deadletter or default_key", word)
}

// String returns the word that ParsePolicy reads.
func (p Policy) String() string {
	return [...]string{"", "reject", "pass", "default_key", "deadletter"}[p.Action]
}

// of returns the policy for a plugin of these capabilities. A filter that fails must let its client know: the event
// might have been one to drop. An extractor's failure costs a key, and the event can be sent on once it is mended.
func (p Policy) of(capabilities uint32) Policy {
	if p.Action != ByKind {
		return p
	}
	if capabilities&abi.SetsKeys != 0 && capabilities&abi.Drops == 0 {
		return Policy{Action: DeadLetter}
	}
	return Policy{Action: Reject}
}
