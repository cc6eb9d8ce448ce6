package control_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/internal/natsd"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func open(t *testing.T, dir string) (*control.Store, *natsd.Server) {
	t.Helper()
	server, err := natsd.Start(t.Context(), natsd.Config{Name: "control", Dir: dir, MaxStore: 1 << 30}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	nc, err := server.Connect("control")
	if err != nil {
		t.Fatal(err)
	}
	store, err := control.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	return store, server
}

func write(t *testing.T, d *control.Documents, name, value string, revision uint64) uint64 {
	t.Helper()
	next, err := d.Write(t.Context(), name, []byte(value), revision)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestDocumentsAreSwappedByRevision(t *testing.T) {
	store, _ := open(t, t.TempDir())
	d := store.Streams
	if _, err := d.Read(t.Context(), "web"); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("read nothing: %v", err)
	}
	first := write(t, d, "web", "one", 0)
	second := write(t, d, "web", "two", first)
	if second <= first || first == 0 {
		t.Errorf("revisions %d, %d", first, second)
	}
	for _, stale := range []uint64{0, first, second + 1} {
		_, err := d.Write(t.Context(), "web", []byte("three"), stale)
		var lost *control.RevisionError
		if !errors.Is(err, control.ErrRevision) || !errors.As(err, &lost) || lost.Revision != stale || lost.Name != "web" {
			t.Errorf("write at %d: %v", stale, err)
		}
	}
	if err := d.Delete(t.Context(), "web", first); !errors.Is(err, control.ErrRevision) {
		t.Errorf("delete at an old revision: %v", err)
	}
	doc, err := d.Read(t.Context(), "web")
	if err != nil || string(doc.Value) != "two" || doc.Revision != second || doc.Name != "web" {
		t.Errorf("read %+v, %v", doc, err)
	}
	if err := d.Delete(t.Context(), "web", second); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(t.Context(), "web"); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("read what was deleted: %v", err)
	}
	if _, err := d.Write(t.Context(), "web", nil, second); !errors.Is(err, control.ErrRevision) {
		t.Errorf("update of what was deleted: %v", err)
	}
	if again := write(t, d, "web", "again", 0); again <= second {
		t.Errorf("revision %d after %d", again, second)
	}
}

func TestDocumentsAreListedByName(t *testing.T) {
	store, _ := open(t, t.TempDir())
	if all, err := store.Streams.List(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("empty: %v, %v", all, err)
	}
	write(t, store.Streams, "zoo", "z", 0)
	write(t, store.Streams, "web.deadletter", "d", 0)
	gone := write(t, store.Streams, "gone", "g", 0)
	write(t, store.Streams, "web", "w", 0)
	write(t, store.Activations, "web", "of another kind", 0)
	if err := store.Streams.Delete(t.Context(), "gone", gone); err != nil {
		t.Fatal(err)
	}
	all, err := store.Streams.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, doc := range all {
		read, err := store.Streams.Read(t.Context(), doc.Name)
		if err != nil || read.Revision != doc.Revision {
			t.Errorf("%s: listed at %d, read at %d, %v", doc.Name, doc.Revision, read.Revision, err)
		}
		got = append(got, doc.Name+"="+string(doc.Value))
	}
	if fmt.Sprint(got) != "[web=w web.deadletter=d zoo=z]" {
		t.Errorf("listed %v", got)
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	store, _ := open(t, t.TempDir())
	largest := string(make([]byte, control.MaxDocument))
	write(t, store.Tables, "web", largest, 0)
	if _, err := store.Tables.Write(t.Context(), "app", []byte(largest+"x"), 0); !errors.Is(err, control.ErrTooLarge) {
		t.Errorf("a byte too large: %v", err)
	}
	for _, name := range []string{"", "*", "a b", ".", "a.", "a..b", ">", "A", "-a", string(bytes.Repeat([]byte("a"), 129))} {
		if _, err := store.Tables.Write(t.Context(), name, nil, 0); !errors.Is(err, control.ErrName) {
			t.Errorf("name %q: %v", name, err)
		}
		if _, err := store.Tables.Read(t.Context(), name); !errors.Is(err, control.ErrName) {
			t.Errorf("read of name %q: %v", name, err)
		}
	}
}

// Many writers that each add one to a counter by compare-and-swap lose no addition.
func TestConcurrentWritersLoseNothing(t *testing.T) {
	const writers, rounds = 8, 20
	store, server := open(t, t.TempDir())
	write(t, store.Tables, "counter", "", 0)
	var conflicts atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for range writers {
		nc, err := server.Connect("writer")
		if err != nil {
			t.Fatal(err)
		}
		other, err := control.Open(t.Context(), nc)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			<-start
			for done := 0; done < rounds; {
				doc, err := other.Tables.Read(t.Context(), "counter")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = other.Tables.Write(t.Context(), "counter", append(doc.Value, '+'), doc.Revision)
				switch {
				case err == nil:
					done++
				case errors.Is(err, control.ErrRevision):
					conflicts.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	close(start)
	all.Wait()
	doc, err := store.Tables.Read(t.Context(), "counter")
	if err != nil || len(doc.Value) != writers*rounds {
		t.Errorf("counted %d of %d, %v", len(doc.Value), writers*rounds, err)
	}
	t.Logf("%d conflicts", conflicts.Load())
}

func TestSecretIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	store, server := open(t, dir)
	secrets := make([][16]byte, 16)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			var err error
			if secrets[i], err = store.Secret(t.Context(), "web"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	other, err := store.Secret(t.Context(), "app")
	if err != nil || other == secrets[0] || secrets[0] == [16]byte{} {
		t.Errorf("secrets %x and %x, %v", secrets[0], other, err)
	}
	server.Close()
	store, _ = open(t, dir)
	again, err := store.Secret(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	for i, secret := range secrets {
		if secret != again {
			t.Errorf("caller %d got %x, after the restart it is %x", i, secret, again)
		}
	}
}

func TestDocumentsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	store, server := open(t, dir)
	revision := write(t, store.Streams, "web", `{"partitions":16}`, 0)
	write(t, store.Activations, "web", `[]`, 0)
	write(t, store.Tables, "web", "table", 0)
	server.Close()
	store, _ = open(t, dir)
	doc, err := store.Streams.Read(t.Context(), "web")
	if err != nil || string(doc.Value) != `{"partitions":16}` || doc.Revision != revision {
		t.Errorf("stream %+v, %v", doc, err)
	}
	for _, d := range []*control.Documents{store.Activations, store.Tables} {
		if _, err := d.Read(t.Context(), "web"); err != nil {
			t.Error(err)
		}
	}
}

func TestLostStoreIsAnErrorAndNotAnAnswer(t *testing.T) {
	store, server := open(t, t.TempDir())
	revision := write(t, store.Streams, "web", "w", 0)
	server.Close()
	if _, err := store.Streams.Read(t.Context(), "web"); err == nil || errors.Is(err, control.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if _, err := store.Streams.Write(t.Context(), "web", nil, revision); err == nil || errors.Is(err, control.ErrRevision) {
		t.Errorf("write: %v", err)
	}
	if _, err := store.Streams.List(t.Context()); err == nil {
		t.Error("list: no error")
	}
	if _, err := store.Secret(t.Context(), "web"); err == nil {
		t.Error("secret: no error")
	}
}
