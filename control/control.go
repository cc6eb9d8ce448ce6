// Package control keeps what gateways share: definitions of streams, versions of plugins with their modules,
// activations, routing tables and secrets, in NATS JetStream. Decisions are made by compare-and-swap alone.
package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotFound says that there is no such value; a *RevisionError, which errors.Is ErrRevision, that a value is not
// at the revision its writer knew; ErrTooLarge and ErrName that a value can't be kept.
var (
	ErrNotFound = errors.New("not found")
	ErrRevision = errors.New("changed by somebody else")
	ErrTooLarge = errors.New("too large")
	ErrName     = errors.New("bad name")
)

// RevisionError is a lost compare-and-swap: read again and decide again.
type RevisionError struct {
	Kind, Name string
	Revision   uint64 // which the writer knew; 0: it expected none to exist
}

// Error names value and revision.
func (e *RevisionError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("%s %q exists already", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q is not at revision %d: %v", e.Kind, e.Name, e.Revision, ErrRevision)
}

// Is reports whether target is ErrRevision.
func (e *RevisionError) Is(target error) bool { return target == ErrRevision }

const (
	// MaxDocument bounds a definition, an activation or a routing table (which has at most 256 KiB).
	MaxDocument = 1 << 20
	// MaxModule bounds a plugin's module: the hard limit of the plugin host.
	MaxModule = 32 << 20

	secretBytes = 16

	// patience bounds a call whose context has no deadline. The server is in the same process, so that an answer does come: also
	// on a busy disk, which has to sync each of the 256 parts of the largest module.
	patience = time.Minute
)

// Store is the shared state. Its methods and those of its parts may be called concurrently, also from several
// processes.
type Store struct {
	Streams     *Documents // stream definitions by stream
	Activations *Documents // which plugins run in a stream, by stream
	Tables      *Documents // routing tables by stream, in the partitioner's own encoding
	Letters     *Documents // which letters of a stream's dead letter are settled, by stream
	Plugins     *Plugins

	secrets *Documents
}

// kinds are the kinds of documents; the versions of a plugin are one.
func kinds() []string { return []string{"stream", "activation", "table", "letter", "secret", "plugin"} }

func (s *Store) documents() []*Documents {
	return []*Documents{s.Streams, s.Activations, s.Tables, s.Letters, s.secrets, s.Plugins.docs}
}

// Open creates what is missing of the store behind nc and returns it. It starts nothing; nc stays the caller's.
func Open(ctx context.Context, nc *nats.Conn) (*Store, error) {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		return nil, fmt.Errorf("open control store: %w", err)
	}
	var s Store
	var versions *Documents
	for _, part := range []struct {
		kind, bucket string
		to           **Documents
	}{
		{"stream", "headgate_streams", &s.Streams},
		{"activation", "headgate_activations", &s.Activations},
		{"table", "headgate_tables", &s.Tables},
		{"letter", "headgate_letters", &s.Letters},
		{"secret", "headgate_secrets", &s.secrets},
		{"plugin", "headgate_plugins", &versions},
	} {
		if *part.to, err = openDocuments(ctx, js, part.kind, part.bucket); err != nil {
			return nil, fmt.Errorf("open control store: %s: %w", part.bucket, err)
		}
	}
	modules, err := js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "headgate_modules"})
	if err != nil {
		return nil, fmt.Errorf("open control store: modules: %w", err)
	}
	s.Plugins = &Plugins{docs: versions, modules: modules}
	return &s, nil
}

// Secret returns the 16 bytes that key the hash of a stream, or of what else has a name, the same for every gateway at any time: they
// are made once, by whoever asks first.
func (s *Store) Secret(ctx context.Context, stream string) (secret [secretBytes]byte, err error) {
	doc, err := s.secrets.Read(ctx, stream)
	if errors.Is(err, ErrNotFound) {
		fresh := make([]byte, secretBytes)
		rand.Read(fresh) // never fails
		_, err = s.secrets.Write(ctx, stream, fresh, 0)
		if err == nil {
			return [secretBytes]byte(fresh), nil
		}
		if errors.Is(err, ErrRevision) { // somebody was faster: theirs counts
			doc, err = s.secrets.Read(ctx, stream)
		}
	}
	if err != nil {
		return secret, err
	}
	if len(doc.Value) != secretBytes {
		return secret, fmt.Errorf("secret of stream %q has %d bytes instead of %d", stream, len(doc.Value), secretBytes)
	}
	return [secretBytes]byte(doc.Value), nil
}
