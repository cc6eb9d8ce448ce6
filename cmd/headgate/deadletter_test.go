package main

import (
	"strings"
	"testing"
)

func TestDeadLetterListAndShow(t *testing.T) {
	row := `{"stream":"web.deadletter","partition":0,"gateway":"ab","number":3,"attributes":{"code":"plugin_failed","plugin":"p","tries":"2","reason":"` +
		strings.Repeat("x", 90) + `"},"data":"t","letter":"ab.3","stored":"2026-03-02T08:00:00Z"}` + "\n"
	s := scripted(t, reply{status: 200, body: row})
	r := command(t, "", "deadletter", "list", "web", "--code", "plugin_failed", "--since", "2h", "-n", "7", "--settled", "--from", "2").expect(t, 0)
	want := "ab.3 2026-03-02T08:00:00Z plugin_failed 2 p " + strings.Repeat("x", 80) + "..."
	if fields := strings.Join(strings.Fields(strings.Split(r.out, "\n")[1]), " "); fields != want {
		t.Errorf("%q", fields)
	}
	if q := s.requests[0]; !strings.HasPrefix(q.path, "/v1/deadletter/web") {
		t.Errorf("%+v", q)
	}
	if r := command(t, "", "deadletter", "list", "web", "-o", "json").expect(t, 0); r.out != row {
		t.Errorf("%q", r.out)
	}
	s.answers = []reply{{status: 200, body: row + `{"error":"backend_unavailable","detail":"it went away"}` + "\n"}}
	if r := command(t, "", "deadletter", "list", "web").expect(t, 1); !strings.Contains(r.stderr, "it went away") {
		t.Errorf("%q", r.stderr)
	}
	s.answers = []reply{{status: 200, body: row}}
	if r := command(t, "", "deadletter", "show", "web", "ab.3").expect(t, 0); !strings.Contains(r.out, `"letter": "ab.3"`) {
		t.Errorf("%q", r.out)
	}
}

func TestDeadLetterReplayAndPurge(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"action":"replay","sums":{"selected":3,"replayed":0,"filtered":0,"failed":0,"left":3},"done":false}` + "\n" +
		`{"action":"replay","sums":{"selected":3,"replayed":3,"filtered":0,"failed":0,"left":0},"done":true}` + "\n"})
	r := command(t, "", "deadletter", "replay", "web", "--plugin", "p", "--rate", "10", "--limit", "3").expect(t, 0)
	if r.out != `{"selected":3,"replayed":3,"filtered":0,"failed":0,"left":0}`+"\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.method != "POST" || q.path != "/v1/deadletter/web" || q.body != `{"action":"replay","limit":3,"plugin":"p","rate":10}` {
		t.Errorf("%+v", q)
	}
	for body, part := range map[string]string{
		`{"sums":{"selected":3,"replayed":1,"failed":2,"left":0},"done":true}`:                                   "2 events failed again",
		`{"sums":{"selected":3,"replayed":1,"failed":1,"left":1},"done":true}`:                                   "1 letters stay",
		`{"sums":{"selected":3,"replayed":1,"left":2},"done":true,"error":"draining","detail":"it is stopping"}`: "draining: it is stopping",
		`{"sums":{"selected":3,"left":3},"done":false}`:                                                          "broke off",
	} {
		s.answers = []reply{{status: 200, body: body + "\n"}}
		if r := command(t, "", "deadletter", "replay", "web", "--all").expect(t, 1); !strings.Contains(r.stderr, part) {
			t.Errorf("%s: %q", body, r.stderr)
		}
	}
	s.answers = []reply{{status: 200, body: `{"sums":{"selected":3,"replayed":0,"failed":3,"left":0},"done":true}` + "\n"}}
	command(t, "", "deadletter", "replay", "web", "--all", "--dry-run").expect(t, 0)
	s.answers = []reply{{status: 200, body: `{"sums":{"selected":1,"purged":1,"left":0},"done":true}` + "\n"}}
	if r := command(t, "", "deadletter", "purge", "web", "ab.3", "--to", "9").expect(t, 0); r.out != `{"selected":1,"purged":1,"left":0}`+"\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[len(s.requests)-1]; q.body != `{"action":"purge","letters":["ab.3"],"to":9}` {
		t.Errorf("%+v", q)
	}
	command(t, "", "deadletter", "purge", "web").expect(t, 2)
	command(t, "", "deadletter", "purge", "web", "--all", "--code", "x").expect(t, 2)
	command(t, "", "deadletter", "replay").expect(t, 2)
}
