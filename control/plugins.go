package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Plugin is a named plugin with its versions, the newest last.
type Plugin struct {
	Name     string
	Versions []Version
}

// Version is one module a plugin was uploaded as.
type Version struct {
	Digest  string          `json:"digest"` // "sha256:" and 64 hex digits
	Size    int             `json:"size"`   // bytes
	Created time.Time       `json:"created"`
	Report  json.RawMessage `json:"report,omitempty"` // of its admission

	Signature []byte `json:"signature,omitempty"` // as it was uploaded
}

// Plugins are the plugins by name, and their modules by digest.
type Plugins struct {
	docs    *Documents
	modules jetstream.ObjectStore
	files   *Files // gets a copy of every module; nil: nobody

	// mu keeps Remove from deleting a module that an Add of this process relies on. Among several processes such
	// a race ends in a version whose module is missing: Module says so, and uploading it again cures it.
	mu sync.Mutex
}

// Digest returns the name of a module's content.
func Digest(module []byte) string {
	sum := sha256.Sum256(module)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Read returns the plugin called name, or ErrNotFound.
func (p *Plugins) Read(ctx context.Context, name string) (Plugin, error) {
	plugin, _, err := p.read(ctx, name)
	return plugin, err
}

func (p *Plugins) read(ctx context.Context, name string) (plugin Plugin, revision uint64, err error) {
	doc, err := p.docs.Read(ctx, name)
	if err != nil {
		return Plugin{}, 0, err
	}
	plugin, err = decode(doc)
	return plugin, doc.Revision, err
}

func decode(doc Document) (Plugin, error) {
	plugin := Plugin{Name: doc.Name}
	if err := json.Unmarshal(doc.Value, &plugin.Versions); err != nil {
		return Plugin{}, fmt.Errorf("versions of plugin %q: %w", doc.Name, err)
	}
	return plugin, nil
}

// List returns all plugins in the order of their names.
func (p *Plugins) List(ctx context.Context) ([]Plugin, error) {
	docs, err := p.docs.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Plugin, 0, len(docs))
	for _, doc := range docs {
		plugin, err := decode(doc)
		if err != nil {
			return nil, err
		}
		all = append(all, plugin)
	}
	return all, nil
}

// Add stores a module as the newest version of the plugin called name, with v's Created, Report and Signature, and
// returns it complete. A version that is there already stays as it is, but is the newest now, and added is false; a signature
// that comes with it takes the place of the one it had, and with it the report.
func (p *Plugins) Add(ctx context.Context, name string, module []byte, v Version) (stored Version, added bool, err error) {
	if err := p.docs.check(name); err != nil {
		return Version{}, false, err
	}
	if len(module) > MaxModule {
		return Version{}, false, fmt.Errorf("module of plugin %q has %d bytes, the limit is %d: %w", name, len(module), MaxModule, ErrTooLarge)
	}
	v.Digest, v.Size = Digest(module), len(module)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.keep(ctx, v.Digest, module); err != nil { // first the module: no version without one
		return Version{}, false, err
	}
	for {
		next := v
		plugin, revision, err := p.read(ctx, name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Version{}, false, err
		}
		at := slices.IndexFunc(plugin.Versions, func(old Version) bool { return old.Digest == v.Digest })
		if at >= 0 {
			old := plugin.Versions[at]
			if next.Created = old.Created; len(v.Signature) == 0 || bytes.Equal(v.Signature, old.Signature) {
				if next = old; at == len(plugin.Versions)-1 {
					return old, false, nil
				}
			}
			plugin.Versions = slices.Delete(plugin.Versions, at, at+1)
		}
		doc, err := json.Marshal(append(plugin.Versions, next))
		if err != nil {
			return Version{}, false, fmt.Errorf("report of plugin %q: %w", name, err)
		}
		_, err = p.docs.Write(ctx, name, doc, revision)
		if err == nil {
			return next, at < 0, nil
		}
		if !errors.Is(err, ErrRevision) {
			return Version{}, false, err
		}
	}
}

// keep stores a module unless it is there, whole.
func (p *Plugins) keep(ctx context.Context, digest string, module []byte) error {
	if _, err := p.Module(ctx, digest); err == nil {
		return nil
	}
	if _, err := p.modules.PutBytes(ctx, digest, module); err != nil {
		return fmt.Errorf("store module %s: %w", digest, err)
	}
	if p.files != nil {
		p.files.writeModule(digest, module)
	}
	return nil
}

// Module returns the module with the digest, or ErrNotFound. What it returns has been checked against the digest.
func (p *Plugins) Module(ctx context.Context, digest string) ([]byte, error) {
	object, err := p.modules.Get(ctx, digest)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, fmt.Errorf("module %s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", digest, err)
	}
	module, err := io.ReadAll(io.LimitReader(object, MaxModule+1))
	err = errors.Join(err, object.Close())
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", digest, err)
	}
	if got := Digest(module); got != digest {
		return nil, fmt.Errorf("read module %s: damaged, its digest is %s", digest, got)
	}
	return module, nil
}

// Remove deletes the plugin called name with all its versions, and the modules that no other plugin has; or it
// returns ErrNotFound. Whether it is in use is for the caller to know.
func (p *Plugins) Remove(ctx context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	plugin, revision, err := p.read(ctx, name)
	if err != nil {
		return err
	}
	if err := p.docs.Delete(ctx, name, revision); err != nil {
		return err
	}
	return p.sweep(ctx, plugin.Versions...)
}

// RemoveVersion deletes one version of the plugin called name (with the last one the plugin), and its module when no
// other plugin has it; or it returns ErrNotFound. Whether it is in use is for the caller to know.
func (p *Plugins) RemoveVersion(ctx context.Context, name, digest string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	plugin, revision, err := p.read(ctx, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(plugin.Versions, func(v Version) bool { return v.Digest == digest })
	if i < 0 {
		return fmt.Errorf("plugin %q, version %s: %w", name, digest, ErrNotFound)
	}
	gone := plugin.Versions[i]
	rest := slices.Delete(plugin.Versions, i, i+1)
	if len(rest) == 0 {
		err = p.docs.Delete(ctx, name, revision)
	} else {
		var doc []byte
		if doc, err = json.Marshal(rest); err == nil {
			_, err = p.docs.Write(ctx, name, doc, revision)
		}
	}
	if err != nil {
		return err
	}
	return p.sweep(ctx, gone)
}

// sweep deletes the modules of removed versions that no plugin has any more. The caller holds p.mu.
func (p *Plugins) sweep(ctx context.Context, removed ...Version) error {
	left, err := p.List(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, plugin := range left {
		for _, v := range plugin.Versions {
			used[v.Digest] = true
		}
	}
	for _, v := range removed {
		if used[v.Digest] {
			continue
		}
		if p.files != nil {
			p.files.removeModule(v.Digest)
		}
		if err := p.modules.Delete(ctx, v.Digest); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("delete module %s: %w", v.Digest, err)
		}
	}
	return nil
}
