package gateway

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
)

// TestAChainInTheMakingHoldsUpNoOtherStream: while the chain of one stream is made, which may take seconds, other streams are
// made and deleted.
func TestAChainInTheMakingHoldsUpNoOtherStream(t *testing.T) {
	dir := t.TempDir()
	begun, end := filepath.Join(dir, "begun"), filepath.Join(dir, "end")
	in := startWith(t, zero(t), []string{"sh", "-c", "touch " + begun + "; while [ ! -e " + end + " ]; do sleep 0.05; done; exit 1"})
	defer in.end()
	if _, _, err := in.store.Plugins.Add(t.Context(), "p", scriptedModule(t), control.Version{}); err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "web", `0`)
	activated := make(chan error, 1)
	go func() {
		_, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p"})
		activated <- err
	}()
	for {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		select {
		case err := <-activated:
			t.Skip("modules are not compiled by another process here: ", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	in.want(200, `"accepted":1`, "other", `0`)
	if err := in.DeleteStream(t.Context(), "other", admin.Match{}); err != nil {
		t.Error(err)
	}
	if len(activated) > 0 {
		t.Error("the activation is not under way any more")
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-activated, event.PluginRefused)
}

// TestAStreamOrVersionDeletedWhileItsChainIsMade: nothing is stored of it, and the chain is freed.
func TestAStreamOrVersionDeletedWhileItsChainIsMade(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	v, _, err := in.Upload(t.Context(), "p", scriptedModule(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "web", `0`)
	s, err := in.find("web")
	if err != nil {
		t.Fatal(err)
	}
	next, err := in.buildChain(t.Context(), s.current.Load(), []activation{{Plugin: "p", Digest: v.Digest}})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.DeletePlugin(t.Context(), "p", ""); err != nil {
		t.Fatal(err)
	}
	store := func() error { t.Error("it is stored"); return nil }
	wantCode(t, in.commitChain(t.Context(), s, next, store), event.UnknownPlugin)
	if next.chain.Acquire() {
		t.Error("the chain is not freed")
	}
	if err := in.DeleteStream(t.Context(), "web", admin.Match{}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, in.commitChain(t.Context(), s, &link{}, store), event.UnknownStream)
}
