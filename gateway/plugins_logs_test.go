package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
)

// A plugin's logs tell its whole way: the upload that was refused, the one that was not, where it failed, and that it is
// gone.
func TestThePluginsLogsTellItsWay(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	logs := func() (int, string) {
		return in.call(http.MethodGet, fmt.Sprintf("http://%s/v1/plugins/p/logs", in.addresses.admin), "", "")
	}
	if status, doc := logs(); status != 404 || !strings.Contains(doc, "unknown_plugin") {
		t.Errorf("%d %s", status, doc)
	}
	for _, wasm := range [][]byte{[]byte("\x00asm\x01\x00\x00\x00"), scriptedModule(t)} {
		if _, _, err := in.Upload(t.Context(), "p", wasm, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p"}); err != nil {
		t.Fatal(err)
	}
	_, _ = in.call("POST", in.events("web"), "text/plain", "lhello from the guest\nt with a secret\n")
	status, doc := logs()
	if status != 200 || strings.Contains(doc, "secret") {
		t.Errorf("%d %s", status, doc)
	}
	at := 0
	for _, want := range []string{`"message":"upload refused: exports: E_EXPORT `, `"from":"gateway","message":"uploaded and admitted: `,
		`"from":"guest","message":"lhello from the guest"`, `failed with TRAP on event 1 of a request`} {
		i := strings.Index(doc[at:], want)
		if i < 0 {
			t.Fatalf("no %s behind byte %d of %s", want, at, doc)
		}
		at += i
	}
	if _, err := in.Deactivate(t.Context(), "web", "p"); err != nil {
		t.Fatal(err)
	}
	if err := in.DeletePlugin(t.Context(), "p", ""); err != nil {
		t.Fatal(err)
	}
	if _, doc := logs(); strings.Contains(doc, "guest") || !strings.Contains(doc, "E_EXPORT") {
		t.Errorf("%s", doc)
	}
}
