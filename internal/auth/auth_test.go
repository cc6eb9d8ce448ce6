package auth

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/race"

	"github.com/headgate-io/headgate/event"
)

func tokens(t testing.TB) *Tokens {
	t.Helper()
	all, err := New([]Token{
		{ID: "web-1", Secrets: []string{"secret-of-web-1", "the-old-one"}, Streams: []string{"web"}, Actions: []Action{Send}},
		{ID: "reader", Secrets: []string{"secret-of-reader"}, Streams: []string{"web"}, Actions: []Action{Read}},
		{ID: "ops", Secrets: []string{"secret-of-ops"}, Streams: []string{All}, Actions: []Action{Admin}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSender(t *testing.T) {
	all := tokens(t)
	for _, c := range []struct {
		header, stream string
		id             string
		code           event.Code
		says           string
	}{
		{"Bearer secret-of-web-1", "web", "web-1", "", ""},
		{"bearer  the-old-one", "web", "web-1", "", ""},
		{"", "web", "", event.Unauthorized, "send Authorization: Bearer TOKEN"},
		{"Bearer", "web", "", event.Unauthorized, "Bearer TOKEN"},
		{"Bearer ", "web", "", event.Unauthorized, "Bearer TOKEN"},
		{"secret-of-web-1", "web", "", event.Unauthorized, "Bearer TOKEN"},
		{"Basic secret-of-web-1", "web", "", event.Unauthorized, "Bearer TOKEN"},
		{"Bearer secret-of-web-", "web", "", event.Unauthorized, "not one of"},
		{"Bearer secret-of-web-1 ", "web", "", event.Unauthorized, "not one of"},
		{"Bearer Secret-of-web-1", "web", "", event.Unauthorized, "not one of"},
		{"Bearer secret-of-web-1", "app", "", event.Forbidden, `not for stream "app"; it is for web`},
		{"Bearer secret-of-web-1", "", "", event.Forbidden, "for web"},
		{"Bearer secret-of-reader", "web", "", event.Forbidden, "lacks the action send; it has read"},
		{"Bearer secret-of-ops", "web", "", event.Forbidden, "lacks the action send; it has admin"},
	} {
		id, no := all.Sender([]byte(c.header), []byte(c.stream))
		if no == nil {
			no = &event.Problem{}
		}
		if string(id) != c.id || no.Code != c.code || !strings.Contains(no.Detail, c.says) {
			t.Errorf("%q to %q: %q, %v", c.header, c.stream, id, no)
		}
		if secret := strings.TrimPrefix(c.header, "Bearer "); len(secret) > 10 && strings.Contains(no.Detail, secret) {
			t.Errorf("the answer repeats what was sent: %s", no.Detail)
		}
	}
}

func TestPermit(t *testing.T) {
	all := tokens(t)
	for _, c := range []struct {
		secret, action, stream string
		code                   event.Code
	}{
		{"secret-of-reader", "read", "web", ""},
		{"secret-of-reader", "read", "web.deadletter", ""},
		{"secret-of-reader", "read", "app", event.Forbidden},
		{"secret-of-reader", "read", "", event.Forbidden},
		{"secret-of-reader", "admin", "web", event.Forbidden},
		{"secret-of-web-1", "read", "web", event.Forbidden},
		{"secret-of-ops", "read", "web", ""},
		{"secret-of-ops", "admin", "", ""},
		{"nobody's", "read", "web", event.Unauthorized},
	} {
		err := all.Permit("Bearer "+c.secret, c.action, c.stream)
		p, _ := errors.AsType[*event.Problem](err)
		if (err == nil) != (c.code == "") || p != nil && p.Code != c.code {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOneSecretIsOneCaller(t *testing.T) {
	if _, err := New([]Token{{ID: "a", Secrets: []string{"x"}}, {ID: "b", Secrets: []string{"y", "x"}}}); err == nil {
		t.Error("two callers have the same secret")
	}
}

func TestReplace(t *testing.T) {
	all := tokens(t)
	if err := all.Replace([]Token{{ID: "a", Secrets: []string{"x"}}, {ID: "b", Secrets: []string{"x"}}}); err == nil {
		t.Error("two callers have the same secret")
	}
	if _, no := all.Sender([]byte("Bearer secret-of-web-1"), []byte("web")); no != nil {
		t.Errorf("after a failed change: %v", no)
	}
	if err := all.Replace([]Token{{ID: "web-1", Secrets: []string{"new"}, Streams: []string{"web"}, Actions: []Action{Send}}}); err != nil {
		t.Fatal(err)
	}
	for secret, ok := range map[string]bool{"new": true, "secret-of-web-1": false} {
		if _, no := all.Sender([]byte("Bearer "+secret), []byte("web")); (no == nil) != ok {
			t.Errorf("%s: %v", secret, no)
		}
	}
}

func TestSenderAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	all := tokens(t)
	header, stream := []byte("Bearer secret-of-web-1"), []byte("web")
	if n := testing.AllocsPerRun(1000, func() {
		if _, no := all.Sender(header, stream); no != nil {
			t.Fatal(no)
		}
	}); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkSender(b *testing.B) {
	all := tokens(b)
	header, stream := []byte("Bearer secret-of-web-1"), []byte("web")
	b.ReportAllocs()
	for b.Loop() {
		if _, no := all.Sender(header, stream); no != nil {
			b.Fatal(no)
		}
	}
}
