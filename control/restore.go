package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// LostError says what a store lacks that it once had.
type LostError struct{ What string }

// Error names the first thing that is missing.
func (e *LostError) Error() string { return "the store has lost " + e.What }

// Check compares the store with the files kept of it, and returns a *LostError when it has less than they.
func (s *Store) Check(ctx context.Context, f *Files) error {
	for _, d := range s.documents() {
		for _, name := range f.expected(d.kind) {
			want, _ := f.read(d.kind, name) // of a damaged file, or one that is gone, we know that there was such a document
			got, err := d.Read(ctx, name)
			switch {
			case errors.Is(err, ErrNotFound):
				return &LostError{fmt.Sprintf("%s %q", d.kind, name)}
			case err != nil:
				return err
			case got.Revision < want.Revision:
				return &LostError{fmt.Sprintf("revision %d of %s %q, and has %d", want.Revision, d.kind, name, got.Revision)}
			}
		}
	}
	return s.checkModules(ctx, f)
}

func (s *Store) checkModules(ctx context.Context, f *Files) error {
	plugins, err := s.Plugins.List(ctx)
	if err != nil {
		return err
	}
	kept := f.modules()
	for _, p := range plugins {
		for _, v := range p.Versions {
			if !slices.Contains(kept, v.Digest) {
				continue
			}
			if _, err := s.Plugins.Module(ctx, v.Digest); err != nil {
				return &LostError{fmt.Sprintf("a module of plugin %q: %v", p.Name, err)}
			}
		}
	}
	return nil
}

// Restore fills an empty store with what the files have. Revisions go on above the old ones, so that who knows an old
// one is not mistaken for knowing a new one.
func (s *Store) Restore(ctx context.Context, f *Files) error {
	for _, digest := range f.modules() {
		module, err := f.module(digest)
		if err != nil {
			return fmt.Errorf("restore module: %w", err)
		}
		if err := s.Plugins.keep(ctx, digest, module); err != nil {
			return err
		}
	}
	for _, d := range s.documents() {
		kept, err := f.documents(d.kind)
		if err != nil {
			return fmt.Errorf("restore every %s: %w", d.kind, err)
		}
		if err := d.restore(ctx, kept); err != nil {
			return err
		}
	}
	return nil
}

func (d *Documents) restore(ctx context.Context, kept []Document) error {
	newest := uint64(0)
	for _, doc := range kept {
		newest = max(newest, doc.Revision)
	}
	bucket, err := d.js.Stream(ctx, "KV_"+d.kv.Bucket())
	if err == nil {
		// Nothing is stored yet: this only sets where the sequence, which is the revision, goes on.
		err = bucket.Purge(ctx, jetstream.WithPurgeSequence(newest+1))
	}
	if err != nil {
		return fmt.Errorf("restore every %s: %w", d.kind, err)
	}
	for _, doc := range kept {
		if _, err := d.Write(ctx, doc.Name, doc.Value, 0); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	return nil
}

// Keep brings the files up to the store, and from then on with every change. It is called before the store is used by
// several goroutines.
func (s *Store) Keep(ctx context.Context, f *Files) error {
	for _, d := range s.documents() {
		docs, err := d.List(ctx)
		if err != nil {
			return fmt.Errorf("keep files: %w", err)
		}
		for _, doc := range docs {
			if kept, err := f.read(d.kind, doc.Name); err == nil && kept.Revision == doc.Revision {
				f.known[f.path(d.kind, doc.Name)] = doc.Revision
				f.mark(d.kind, doc.Name, true)
				continue
			}
			f.write(d.kind, doc)
		}
		d.files = f
	}
	s.Plugins.files = f
	return s.keepModules(ctx, f)
}

func (s *Store) keepModules(ctx context.Context, f *Files) error {
	plugins, err := s.Plugins.List(ctx)
	if err != nil {
		return fmt.Errorf("keep files: %w", err)
	}
	used := map[string]bool{}
	for _, p := range plugins {
		for _, v := range p.Versions {
			used[v.Digest] = true
			if _, err := f.module(v.Digest); err == nil {
				continue
			}
			module, err := s.Plugins.Module(ctx, v.Digest)
			if err != nil { // a version without its module, see Plugins.mu: uploading it again cures it
				f.failed("read", v.Digest, err)
				continue
			}
			f.writeModule(v.Digest, module)
		}
	}
	for _, digest := range f.modules() {
		if !used[digest] {
			f.removeModule(digest)
		}
	}
	return nil
}
