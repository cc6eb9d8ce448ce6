package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins"
)

// Trust reads the keys. Errors have their path in the settings of plugins.
func (p *Plugins) Trust() (*plugins.Trust, error) {
	var keys []string
	for i, key := range p.TrustedKeys {
		path := fmt.Sprintf("trusted_keys.%d", i)
		if file, ok := strings.CutPrefix(key, "file:"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, settings.At(path, err)
			}
			key = string(text)
		}
		if _, err := plugins.NewTrust([]string{key}, false); err != nil {
			return nil, settings.At(path, err)
		}
		keys = append(keys, key)
	}
	if p.RequireSignature && len(keys) == 0 {
		return nil, settings.At("require_signature", errors.New("a signature is required and no key is trusted; name one in plugins.trusted_keys"))
	}
	return plugins.NewTrust(keys, p.RequireSignature)
}
