// Package openapi describes the HTTP API of the gateway as an OpenAPI 3.1 document.
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/headgate-io/headgate/internal/problem"
)

//go:embed api.yaml
var source []byte

// Document returns the description of version as JSON. The codes have the status and the retryability that answers have.
func Document(version string) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	doc["info"].(map[string]any)["version"] = version
	meanings := doc["x-codes"].(map[string]any)
	codes := map[string]code{}
	for word, kind := range problem.Codes() {
		means, _ := meanings[string(word)].(string)
		codes[string(word)] = code{kind.Status, kind.Retryable, means}
	}
	doc["x-codes"] = codes
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	schemas["Code"].(map[string]any)["enum"] = slices.Sorted(maps.Keys(codes))
	return json.Marshal(doc)
}

// code is an entry of x-codes.
type code struct {
	Status    int    `json:"status"`
	Retryable bool   `json:"retryable"`
	Means     string `json:"means"`
}
