package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// Document is one value with its name and revision. Revisions grow over all documents of a kind.
type Document struct {
	Name     string
	Value    []byte
	Revision uint64 // above 0
}

// Documents are the values of one kind by name. They keep the newest revision only.
type Documents struct {
	kind  string // for errors
	js    jetstream.JetStream
	kv    jetstream.KeyValue
	files *Files // gets a copy of every change; nil: nobody
}

// names are one or several words, as streams, dead letters and plugins are called.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

const maxName = 128

func openDocuments(ctx context.Context, js jetstream.JetStream, kind, bucket string) (*Documents, error) {
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, History: 1, MaxValueSize: MaxDocument + 1<<10})
	if err != nil {
		return nil, err
	}
	return &Documents{kind: kind, js: js, kv: kv}, nil
}

// Read returns the document called name, or ErrNotFound.
func (d *Documents) Read(ctx context.Context, name string) (Document, error) {
	if err := d.check(name); err != nil {
		return Document{}, err
	}
	entry, err := d.kv.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Document{}, fmt.Errorf("%s %q: %w", d.kind, name, ErrNotFound)
	}
	if err != nil {
		return Document{}, fmt.Errorf("read %s %q: %w", d.kind, name, err)
	}
	return Document{Name: name, Value: entry.Value(), Revision: entry.Revision()}, nil
}

// List returns all documents in the order of their names.
func (d *Documents) List(ctx context.Context) ([]Document, error) {
	watcher, err := d.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("list every %s: %w", d.kind, err)
	}
	defer watcher.Stop()
	var all []Document
	for {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return nil, fmt.Errorf("list every %s: %w", d.kind, jetstream.ErrConnectionClosed)
			case entry == nil: // the end of what is stored
				slices.SortFunc(all, func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
				return all, nil
			}
			all = append(all, Document{Name: entry.Key(), Value: entry.Value(), Revision: entry.Revision()})
		case <-ctx.Done():
			return nil, fmt.Errorf("list every %s: %w", d.kind, ctx.Err())
		}
	}
}

// Write stores value if the document is at revision, 0 for one that does not exist, and returns the new revision;
// a *RevisionError says that it was not. After any other error it is unknown whether the value was stored: read it.
func (d *Documents) Write(ctx context.Context, name string, value []byte, revision uint64) (uint64, error) {
	if err := d.check(name); err != nil {
		return 0, err
	}
	if len(value) > MaxDocument {
		return 0, fmt.Errorf("%s %q has %d bytes, the limit is %d: %w", d.kind, name, len(value), MaxDocument, ErrTooLarge)
	}
	var next uint64
	var err error
	if revision == 0 {
		next, err = d.kv.Create(ctx, name, value)
	} else {
		next, err = d.kv.Update(ctx, name, value, revision)
	}
	if err != nil {
		return 0, d.lost("write", name, revision, err)
	}
	failpoint.Pass(failpoint.Stored)
	if d.files != nil {
		d.files.write(d.kind, Document{Name: name, Value: value, Revision: next})
	}
	failpoint.Pass(failpoint.Copied)
	return next, nil
}

// Delete removes the document if it is at revision.
func (d *Documents) Delete(ctx context.Context, name string, revision uint64) error {
	if err := d.check(name); err != nil {
		return err
	}
	if revision == 0 {
		return fmt.Errorf("BUG: delete %s %q at revision 0", d.kind, name)
	}
	if d.files != nil {
		d.files.remove(d.kind, name, revision)
	}
	if err := d.kv.Delete(ctx, name, jetstream.LastRevision(revision)); err != nil {
		return d.lost("delete", name, revision, err)
	}
	return nil
}

func (d *Documents) check(name string) error {
	if len(name) > maxName || !names.MatchString(name) {
		return fmt.Errorf("%s %.*q: %w", d.kind, maxName, name, ErrName)
	}
	return nil
}

// lost turns the refusals of a compare-and-swap into one error.
func (d *Documents) lost(verb, name string, revision uint64, err error) error {
	const conflict, conflictInCluster = jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant
	var coded *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &coded) && (coded.ErrorCode == conflict || coded.ErrorCode == conflictInCluster) {
		return &RevisionError{Kind: d.kind, Name: name, Revision: revision}
	}
	return fmt.Errorf("%s %s %q: %w", verb, d.kind, name, err)
}
