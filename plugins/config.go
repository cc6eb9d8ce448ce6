package plugins

import (
	"bytes"
	"encoding/json"
)

// ConfigFits reports whether a plugin may be given this configuration: a JSON object, or nothing. Guests and their SDKs read no
// other value.
func ConfigFits(config []byte) bool {
	return len(config) == 0 || json.Valid(config) && bytes.HasPrefix(bytes.TrimLeft(config, " \t\r\n"), []byte("{"))
}
