package config

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
)

func TestMemoryThatIsNeeded(t *testing.T) {
	cfg := Default()
	plain := cfg.MemoryNeeds(2)
	if plain.Surely < 300<<20 || plain.Surely > 480<<20 || plain.AtMost < plain.Surely {
		t.Errorf("as it comes: %+v", plain)
	}
	cfg.Streams = map[string]Stream{"web": Stream{ID: ID{JSON: "/id"}, Plugins: []Plugin{{}}}.WithDefaults()}
	more := cfg.MemoryNeeds(2)
	ids := settings.Bytes(cfg.Streams["web"].ID.Window.IDs) * idBytes
	least, most := partitioner.MeterSize(16, 2) // keys are counted
	if ids == 0 || least < 50<<10 || most < 2*least || more.Surely-plain.Surely != ids+settings.Bytes(least) ||
		more.AtMost-plain.AtMost < ids+2*cfg.Plugins.Memory+settings.Bytes(most) {
		t.Errorf("with ids and a plugin: %+v", more)
	}
	cfg.Memory = 64 << 20
	if less := cfg.MemoryNeeds(2); less.Surely >= more.Surely {
		t.Errorf("with less memory: %+v", less)
	}
}

func TestMemoryThatDoesNotFit(t *testing.T) {
	cfg := Default()
	needs := cfg.MemoryNeeds(2)
	for limit, want := range map[settings.Bytes]string{
		0: "", 512 << 20: "", needs.Surely: "",
		needs.Surely - 1: "set memory to 255MiB at most",
		256 << 20:        "memory: with 256MiB the gateway needs 401MiB, and its control group lets it have 256MiB; set memory to 147MiB at most, or give it more",
		64 << 20:         "no value of memory is small enough",
	} {
		err := needs.Against(limit, "its control group", cfg.Memory)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v, want %q", limit, err, want)
		}
	}
	if limit, of := MemoryLimit(); limit < 64<<20 || of == "" {
		t.Errorf("this machine has %d bytes (%s)", limit, of)
	}
	// What it proposes fits.
	cfg.Memory = 147 << 20
	if err := cfg.MemoryNeeds(2).Against(256<<20, "x", cfg.Memory); err != nil {
		t.Error(err)
	}
}
