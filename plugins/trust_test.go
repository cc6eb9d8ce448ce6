package plugins

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// What minisign 0.11 made of the message below, with two keys.
const (
	signedBytes = "a module, or so"
	keyA        = "RWQ35W1VEaQvyTYKzNYih6jza7EKzKzvrdse+LBP0c2Q3BIWNRVYEX5q"
	keyB        = "untrusted comment: minisign public key 704D9C5CA79DD1FD\nRWT90Z2nXJxNcI4ndMLQ5WT/dtCR0S0flEJpt+cZ6wwHxm6by1b/x5Hv\n"
	hashedByA   = "untrusted comment: signature from minisign secret key\n" +
		"RUQ35W1VEaQvyfmGU9xvZ4/kDlEwhCu9vzTas2XkaokufAvntf+m7ihKQHBBk2FTptO79k98+p9z59D1+GvM3jkDBNtaXrT8pwM=\n" +
		"trusted comment: release 1.2 of demo\n" +
		"y5IUhtAQOYzdvDd2BDuYwe4NA9QaVX347OP1VTq1eDlb9/ExOi9QRsjj/oskrAp3+7jcqaO+NvX5hxf+WB5PAQ==\n"
	legacyByA = "untrusted comment: signature from minisign secret key\n" +
		"RWQ35W1VEaQvyXyxfidAF+TNJ81GunWoMsEUtJE5PyUxX9LUTO/r6u7DQgBENswtL4o8zgzyjo1BCnDo0e8VSX4AeNJ8lidmvQI=\n" +
		"trusted comment: timestamp:1796034259\tfile:m\n" +
		"rrvzNkmxhJ/s+CUNOR5iFD4rcdjR51LQcrHtEhjmJ29G21I6uBcYICraUMGcWEYa7OyMJAREiM5rTaJDjmF4Bg==\n"
	hashedByB = "untrusted comment: signature from minisign secret key\n" +
		"RUT90Z2nXJxNcHMEo1Rvqpa6RzcCnb0BjlYCIv2IpwdT/9eOOwUkeQ3VQePrp5mezbbkFzN1CD61DDWwYs/9IJCqgckimJTs9AQ=\n" +
		"trusted comment: timestamp:1796034259\tfile:m\thashed\n" +
		"D3cAw8yt8ansIOcVT+kPxbxyx62Mm3OxkYsUNUIRkrD5qdXldJjvurOUFD7EoZp0d48/8uJ4Ax0VdRy2mlLsCQ==\n"
)

func trustOf(t *testing.T, required bool, keys ...string) *Trust {
	t.Helper()
	trust, err := NewTrust(keys, required)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

func TestF69Signatures(t *testing.T) {
	line := func(text string, n int, with string) string { // text with its n-th line replaced
		lines := strings.Split(text, "\n")
		lines[n] = with
		return strings.Join(lines, "\n")
	}
	trust := trustOf(t, true, keyA)
	both := trustOf(t, true, keyB, keyA)
	for _, c := range []struct {
		name            string
		trust           *Trust
		data, signature string
		note, fault     string // part of it
	}{
		{"hashed before", trust, signedBytes, hashedByA, "signed with the key C92FA411556DE537: release 1.2 of demo", ""},
		{"not hashed", trust, signedBytes, legacyByA, "key C92FA411556DE537", ""},
		{"the second key", both, signedBytes, hashedByB, "key 704D9C5CA79DD1FD", ""},
		{"with CRLF", trust, signedBytes, strings.ReplaceAll(hashedByA, "\n", "\r\n"), "release 1.2 of demo", ""},
		{"another key", trust, signedBytes, hashedByB, "", "704D9C5CA79DD1FD, which is not among plugins.trusted_keys: C92FA411556DE537"},
		{"other bytes", trust, signedBytes + ".", hashedByA, "", "C92FA411556DE537 does not fit"},
		{"other bytes, not hashed", trust, signedBytes + ".", legacyByA, "", "does not fit"},
		{"another trusted comment", trust, signedBytes, line(hashedByA, 2, "trusted comment: release 1.3 of demo"), "", "does not fit"},
		{"the comment's signature of another", trust, signedBytes, line(hashedByA, 3, strings.Split(legacyByA, "\n")[3]), "", "does not fit"},
		{"one that says it is hashed and is not", trust, signedBytes, strings.Replace(legacyByA, "RWQ35", "RUQ35", 1), "", "does not fit"},
		{"an algorithm that there is not", trust, signedBytes, strings.Replace(legacyByA, "RWQ35", "RXQ35", 1), "", "none of minisign"},
		{"no signature", trust, signedBytes, "", "", "not signed and plugins.require_signature is on"},
		{"half a signature", trust, signedBytes, hashedByA[:100], "", "none of minisign"},
		{"the key instead", trust, signedBytes, keyB, "", "none of minisign"},
		{"a huge one", trust, signedBytes, hashedByA + strings.Repeat("x", maxSignature), "", "the limit is 4096"},
		{"none needed", trustOf(t, false, keyA), signedBytes, "", "", ""},
		{"none needed, and a wrong one", trustOf(t, false, keyA), signedBytes, hashedByB, "", "not among"},
		{"no keys", trustOf(t, false), signedBytes, hashedByB, "not checked", ""},
		{"no trust", nil, signedBytes, "", "", ""},
	} {
		note, err := c.trust.Verify([]byte(c.data), []byte(c.signature))
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) || !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: %q, %v", c.name, note, err)
		}
	}
}

func TestKeysAreRead(t *testing.T) {
	for name, keys := range map[string][]string{"a private thing": {"RWRTY0Iy"}, "a signature": {keyA, hashedByA}, "nothing": {""}, "none, and required": nil} {
		if _, err := NewTrust(keys, true); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A module that is not signed is not even read.
func TestF69UnsignedModulesAreRefused(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := hostOf(t, Config{Trust: trustOf(t, true, public.String())})
	module := base().bytes()
	r, err := h.Admit(t.Context(), module)
	if err != nil || r.OK() || len(r.Checks) != 1 || !strings.HasPrefix(r.Failed(), "E_SIGNATURE the module is not signed") {
		t.Errorf("%v: %+v", err, r)
	}
	signature := minisign.Sign(private, module)
	if r, err = h.AdmitSigned(t.Context(), module, signature); err != nil || !r.OK() || r.Checks[0].Check != "signature" || !r.Checks[0].OK {
		t.Errorf("%v: %+v", err, r)
	}
	if err := h.Trusted(module, signature); err != nil {
		t.Error(err)
	}
	if err := h.Trusted(module, nil); err == nil || !strings.Contains(err.Error(), "plugin_refused: E_SIGNATURE") {
		t.Error(err)
	}
}

// The tool itself signs; whoever has not installed it is told.
func TestSignaturesOfTheToolFit(t *testing.T) {
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skip("minisign is not installed: apt-get install minisign")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		cmd := exec.Command("minisign", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %s: %v\n%s", args, err, out)
		}
	}
	module := base().bytes()
	if err := os.WriteFile(filepath.Join(dir, "demo.wasm"), module, 0o600); err != nil {
		t.Fatal(err)
	}
	run("-G", "-W", "-p", "minisign.pub", "-s", "minisign.key")
	key, err := os.ReadFile(filepath.Join(dir, "minisign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	h := hostOf(t, Config{Trust: trustOf(t, true, string(key))})
	for _, how := range [][]string{nil, {"-l"}, {"-H"}} {
		run(append(how, "-S", "-s", "minisign.key", "-m", "demo.wasm")...)
		signature, err := os.ReadFile(filepath.Join(dir, "demo.wasm.minisig"))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := h.AdmitSigned(t.Context(), module, signature); err != nil || !r.OK() {
			t.Errorf("%s: %v: %s", how, err, r.Failed())
		}
	}
}
