package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// identity is a key of the NATS kind with its public half.
type identity struct {
	nkeys.KeyPair
	public string
}

func newIdentity(t *testing.T, prefix nkeys.PrefixByte) identity {
	t.Helper()
	pair, err := nkeys.CreatePair(prefix)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return identity{pair, public}
}

func encode(t *testing.T, claims interface {
	Encode(nkeys.KeyPair) (string, error)
}, by identity) string {
	t.Helper()
	token, err := claims.Encode(by)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// issue makes an operator, an account with JetStream and a user: the settings of the server, and the user's credentials.
func issue(t *testing.T) (settings string, creds []byte) {
	t.Helper()
	operator, account, user := newIdentity(t, nkeys.PrefixByteOperator), newIdentity(t, nkeys.PrefixByteAccount), newIdentity(t, nkeys.PrefixByteUser)
	system := newIdentity(t, nkeys.PrefixByteAccount)
	root := jwt.NewOperatorClaims(operator.public)
	root.SystemAccount = system.public
	events := jwt.NewAccountClaims(account.public)
	events.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	settings = fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: {%s: %s, %s: %s}\nmax_payload: 8MB\n", encode(t, root, operator),
		account.public, encode(t, events, operator), system.public, encode(t, jwt.NewAccountClaims(system.public), operator))
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds, err = jwt.FormatUserConfig(encode(t, jwt.NewUserClaims(user.public), account), seed)
	if err != nil {
		t.Fatal(err)
	}
	return settings, creds
}

func TestExternalNATSCredentials(t *testing.T) {
	settings, creds := issue(t)
	server := newNATS(t, settings)
	server.start()
	file := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_NATS_CREDS", string(creds))
	for i, given := range []string{"file:" + file, file, "env:TEST_NATS_CREDS"} {
		p := startGateway(t, t.TempDir(), "--set", "streams={s: {backend: bus}}",
			"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q, creds: %q}}}", server.url(), given))
		if status, answer := p.post("s", `{}`, "ack=delivered"); status != 200 {
			t.Errorf("%s: %d %s", given, status, answer)
		}
		if rows := p.tail("s"); len(rows) != i+1 {
			t.Errorf("%s: %d rows", given, len(rows))
		}
		if code := p.terminate(); code != 0 {
			t.Errorf("exit %d\n%s", code, p.log)
		}
	}
	refuses(t, 1, "--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q}}}", server.url()))
}
