package plugins

import "github.com/headgate-io/headgate/event"

// Action is what becomes of an event on which a plugin failed.
type Action uint8

// Reject is the zero value and the default.
const (
	Reject     Action = iota // the client is told plugin_failed
	Pass                     // goes on as it was before, with key and bytes unchanged
	DefaultKey               // goes on with Policy.Key
	DeadLetter               // is set aside; refused by NewChain as long as there is no dead letter
)

// Policy is a step's on_error. The zero value rejects.
type Policy struct {
	Action Action
	Key    []byte // for DefaultKey
}

// ParsePolicy reads the words of the configuration: reject (also when empty), pass, deadletter, or default_key
// with its key. Others give an *event.Problem with code bad_configuration.
func ParsePolicy(word, key string) (Policy, error) {
	switch word {
	case "", "reject":
		return Policy{}, nil
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
	return [...]string{"reject", "pass", "default_key", "deadletter"}[p.Action]
}
