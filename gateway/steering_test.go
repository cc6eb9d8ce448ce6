package gateway

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
)

// TestAChainInTheMakingHoldsUpNoOtherStream: while a chain of one stream is made, which may take seconds, other streams are
// made, changed and deleted; and what was deleted meanwhile is not activated.
func TestAChainInTheMakingHoldsUpNoOtherStream(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	for _, name := range []string{"p", "q"} {
		if _, _, err := in.Upload(t.Context(), name, scriptedModule(t)); err != nil {
			t.Fatal(err)
		}
	}
	in.want(200, `"accepted":1`, "web", `0`)
	s, err := in.find("web")
	if err != nil {
		t.Fatal(err)
	}
	s.changing.Lock() // as long as an activation makes instances
	done := make(chan error, 1)
	go func() {
		_, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p"})
		done <- err
	}()
	others := make(chan struct{})
	go func() {
		defer close(others)
		in.want(200, `"accepted":1`, "other", `0`)
		if _, err := in.Activate(t.Context(), "third", admin.Activation{Plugin: "q"}); err != nil {
			t.Error(err)
		}
		if err := in.DeleteStream(t.Context(), "other", admin.Match{}); err != nil {
			t.Error(err)
		}
		wantCode(t, in.DeletePlugin(t.Context(), "q", ""), event.PluginInUse)
	}()
	select {
	case <-others:
	case <-time.After(20 * time.Second):
		t.Error("other streams wait")
	}
	if err := in.DeletePlugin(t.Context(), "p", ""); err != nil {
		t.Error(err)
	}
	s.changing.Unlock()
	wantCode(t, <-done, event.UnknownPlugin)
}

// TestAStreamOrVersionDeletedWhileItsChainIsMade: nothing is stored of it, and the chain is freed.
func TestAStreamOrVersionDeletedWhileItsChainIsMade(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	v, _, err := in.Upload(t.Context(), "p", scriptedModule(t))
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
