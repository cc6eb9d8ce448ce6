package spool

import (
	"slices"
	"strings"

	"github.com/headgate-io/headgate/internal/memdisk"
)

// memory is Files in memory, which knows what would survive a power cut.
type memory struct {
	*memdisk.Memory
	lies bool // Sync says yes and does nothing
}

// liar is a file whose Sync does nothing.
type liar struct{ File }

func (liar) Sync() error { return nil }

func newMemory() *memory { return &memory{Memory: memdisk.New()} }

func (m *memory) Open(name string, create bool) (File, error) {
	f, err := m.Memory.Open(name, create)
	switch {
	case err != nil:
		return nil, err
	case m.lies:
		return liar{f}, nil
	}
	return f, nil
}

// crash returns the folder as a power cut may leave it; see memdisk.
func (m *memory) crash(choose func(n int) int) (after *memory) {
	m.Still(func() { after = &memory{Memory: m.PowerCut(choose)} })
	return after
}

// copy returns the folder as it looks.
func (m *memory) copy() (after *memory) {
	m.Still(func() { after = &memory{Memory: m.Kill()} })
	return after
}

// flip changes the lowest bit of a byte.
func (m *memory) flip(name string, at int) {
	content := m.Content(name)
	content[at] ^= 1
	m.Put(name, content)
}

func (m *memory) names(prefix string) []string {
	return slices.DeleteFunc(m.Names(prefix), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
