package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWeakTokensAreRefused(t *testing.T) {
	good, other := secretFile(t, "0123456789abcdef0123"), secretFile(t, "another-secret-of-some-length")
	t.Setenv("EMPTY_TOKEN_OF_A_TEST", "")
	token := func(members string) string {
		all := map[string]string{"id": "a", "secret": good, "streams": "[web]", "actions": "[send]"}
		for m := range strings.SplitSeq(members, "; ") {
			if name, value, ok := strings.Cut(m, "= "); ok {
				all[name] = value
			}
		}
		return fmt.Sprintf("{id: %q, secret: %q, streams: %s, actions: %s}", all["id"], all["secret"], all["streams"], all["actions"])
	}
	for doc, want := range map[string]string{
		token(""): "",
		token("streams= ['*']; actions= [send, read, admin]"): "",
		"":                       "auth.tokens: there is none",
		token("secret= hunter2"): "auth.tokens.0.secret: must be file:PATH or env:NAME",
		token("secret= "):        "auth.tokens.0.secret: is missing",
		token("secret= env:EMPTY_TOKEN_OF_A_TEST"): "auth.tokens.0.secret: the variable EMPTY_TOKEN_OF_A_TEST is not set",
		token("secret= file:/does/not/exist"):      "auth.tokens.0.secret: open /does/not/exist",
		token("secret= " + secretFile(t, " \n")):   "is empty",
		token("secret= " + secretFile(t, "a b")):   "auth.tokens.0.secret: must consist of letters",
		token("") + ", " + token("secret= "+other): `auth.tokens.1.id: "a" is there twice`,
		token("") + ", " + token("id= b"):          `auth.tokens.1.secret: the same as one of token "a"`,
		token("id= "):                              `auth.tokens.0.id: "" must be`,
		token("id= a b"):                           `auth.tokens.0.id: "a b" must be`,
		token("streams= [wbe]"):                    `auth.tokens.0.streams: there is no stream "wbe"`,
		token("streams= ['web*']"):                 `auth.tokens.0.streams: "web*" is not a stream name`,
		token("streams= []"):                       `auth.tokens.0.streams: name those`,
		token("actions= []"):                       `auth.tokens.0.actions: name what`,
		token("actions= [write]"):                  `auth.tokens.0.actions: must be among ["send" "read" "admin"], got "write"`,
	} {
		_, err := load(t, "streams: {web: {}}\nauth: {tokens: ["+doc+"]}")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n got %v\nwant %s", doc, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats a secret: %v", err)
		}
	}
	_, err := load(t, "auth: {tokens: [{id: a, secret: 470815, streams: ['*'], actions: [send]}]}")
	if err == nil || strings.Contains(err.Error(), "470815") {
		t.Errorf("a number as a secret: %v", err)
	}
	if _, err := load(t, "auth: {tokens: ["+token("streams= [later]")+"]}"); err != nil {
		t.Errorf("a stream that is made on first use: %v", err)
	}
}

func TestGuessableTokensAreWarnedOf(t *testing.T) {
	doc := fmt.Sprintf("auth: {tokens: [{id: a, secret: %q, streams: ['*'], actions: [send]}]}", secretFile(t, "hunter2"))
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := Load(Sources{File: file, Environ: []string{"HEADGATE_TOKEN=x"}})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "auth.tokens.0.secret") || strings.Contains(warnings[0], "hunter2") {
		t.Errorf("%q, %v", warnings, err)
	}
}

func TestOpenAdminListenersAreWarnedOf(t *testing.T) {
	for listen, warns := range map[string]bool{"127.0.0.1:9090": false, "[::1]:0": false, "localhost:9090": false, ":9090": true, "0.0.0.0:9090": true, "10.0.0.7:9090": true} {
		_, warnings, err := Load(Sources{Set: []string{"admin.listen=\"" + listen + "\""}})
		if err != nil || (len(warnings) > 0) != warns {
			t.Errorf("%s: %q, %v", listen, warnings, err)
		}
	}
}
