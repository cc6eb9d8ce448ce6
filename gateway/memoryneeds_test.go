package gateway

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/settings"
)

func TestMemoryThatIsNeeded(t *testing.T) {
	cfg := DefaultConfig()
	plain := cfg.memoryNeeds(2)
	if plain.surely < 300<<20 || plain.surely > 480<<20 || plain.atMost < plain.surely {
		t.Errorf("as it comes: %+v", plain)
	}
	cfg.Streams = map[string]StreamConfig{"web": StreamConfig{ID: IDConfig{JSON: "/id"}, Plugins: []PluginConfig{{}}}.withDefaults()}
	more := cfg.memoryNeeds(2)
	ids := settings.Bytes(cfg.Streams["web"].ID.Window.IDs) * idBytes
	if ids == 0 || more.surely-plain.surely != ids || more.atMost-plain.atMost < ids+2*cfg.Plugins.Memory {
		t.Errorf("with ids and a plugin: %+v", more)
	}
	cfg.Memory = 64 << 20
	if less := cfg.memoryNeeds(2); less.surely >= more.surely {
		t.Errorf("with less memory: %+v", less)
	}
}

func TestMemoryThatDoesNotFit(t *testing.T) {
	cfg := DefaultConfig()
	needs := cfg.memoryNeeds(2)
	for limit, want := range map[settings.Bytes]string{
		0: "", 512 << 20: "", needs.surely: "",
		needs.surely - 1: "set memory to 255MiB at most",
		256 << 20:        "memory: with 256MiB the gateway needs 401MiB, and its control group lets it have 256MiB; set memory to 147MiB at most, or give it more",
		64 << 20:         "no value of memory is small enough",
	} {
		err := needs.against(limit, "its control group", cfg.Memory)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v, want %q", limit, err, want)
		}
	}
	if limit, of := memoryLimit(); limit < 64<<20 || of == "" {
		t.Errorf("this machine has %d bytes (%s)", limit, of)
	}
	// What it proposes fits.
	cfg.Memory = 147 << 20
	if err := cfg.memoryNeeds(2).against(256<<20, "x", cfg.Memory); err != nil {
		t.Error(err)
	}
}
