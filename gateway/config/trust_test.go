package config

import (
	"strings"
	"testing"
)

func TestKeysOfTheConfigurationAreChecked(t *testing.T) {
	for set, part := range map[string]string{
		"plugins.trusted_keys=[nonsense]":          "plugins.trusted_keys.0: no public key of minisign",
		`plugins.trusted_keys=["file:/not/there"]`: "plugins.trusted_keys.0: open /not/there",
		"plugins.require_signature=true":           "plugins.require_signature: a signature is required and no key is trusted",
		"plugins={trusted_keys: nonsense}":         "plugins.trusted_keys",
	} {
		if _, _, err := Load(Sources{Set: []string{set}}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
