package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/headgate-io/headgate/admin"
)

// Where a signature is required nothing runs without one, also what was uploaded before it was.
func TestF69NothingUnsignedRunsWhereASignatureIsRequired(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	module := scriptedModule(t)
	signature := minisign.Sign(private, module)
	cfg := zero(t)
	in := start(t, cfg)
	if _, _, err := in.Upload(t.Context(), "p", module, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Activate(t.Context(), "web", admin.Activation{Plugin: "p"}); err != nil {
		t.Fatal(err)
	}
	in.want(200, `"accepted":1`, "web", `0`)
	in.end()

	key := filepath.Join(t.TempDir(), "minisign.pub")
	text, _ := public.MarshalText()
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Plugins.TrustedKeys, cfg.Plugins.RequireSignature = []string{"file:" + key}, true
	in = start(t, cfg)
	in.want(503, "E_SIGNATURE the module is not signed", "web", `0`)
	if detail, ok := in.pluginsDetail(); ok || !strings.Contains(detail, "E_SIGNATURE") {
		t.Errorf("readiness: %v %q", ok, detail)
	}
	for _, bad := range [][]byte{nil, []byte("a signature"), minisign.Sign(private, []byte("another module"))} {
		v, _, err := in.Upload(t.Context(), "p", module, bad)
		if err != nil || len(v.Checks) != 1 || v.Checks[0].Code != "E_SIGNATURE" {
			t.Errorf("%v: %+v", err, v)
		}
	}
	v, created, err := in.Upload(t.Context(), "p", module, signature)
	if err != nil || created || v.Checks[0].Check != "signature" || !v.Checks[0].OK {
		t.Errorf("%v, new: %v: %+v", err, created, v)
	}
	in.want(200, `"accepted":1`, "web", `0`)
	in.end()

	in = start(t, cfg)
	in.want(200, `"accepted":1`, "web", `0`)
	in.end()

	other, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Plugins.TrustedKeys = []string{other.String()} // the old one is not trusted any more
	in = start(t, cfg)
	defer in.end()
	in.want(503, "which is not among plugins.trusted_keys", "web", `0`)
}
