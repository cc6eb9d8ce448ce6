package main

import (
	"strings"
	"testing"
)

func TestExplainPrintsALineForEachEvent(t *testing.T) {
	one := reply{status: 200, body: `{"events":[{"index":0,"verdict":"accepted","id":"i","key":"a\"b","key_from":"json /k","hash":"00ab","slot":7,"partition":3},` +
		`{"index":1,"verdict":"rejected","by":"key","code":"key_not_scalar","detail":"the key is an object"}]}`}
	two := reply{status: 200, body: `{"events":[{"index":0,"verdict":"accepted","key_base64":"/w==","key_from":"plugin p","hash":"00ff","slot":1},{"index":1,"verdict":"filtered","by":"plugin p"},` +
		`{"index":2,"verdict":"accepted","partition":0}],"events_truncated":true}`}
	s := scripted(t, one, two, one)
	r := command(t, "{}\n\n{}\n", "explain", "--stream", "s", "--key", "k", "-").expect(t, 0)
	want := "stdin:1: accepted, id \"i\", key \"a\\\"b\" from json /k, hash 00ab, slot 7, partition 3\n" +
		"stdin:3: rejected by key: key_not_scalar: the key is an object\n"
	if r.out != want {
		t.Errorf("got  %s\nwant %s", r.out, want)
	}
	if q := s.requests[0]; q.path != "/v1/streams/s/events?dry_run=true" || q.body != "{}\n{}\n" || q.header.Get("Headgate-Key") != "k" {
		t.Errorf("%+v", q)
	}
	r = command(t, "[1,2,3]", "explain", "--stream", "s", "--type", "application/json", "-").expect(t, 0)
	want = "event 1: accepted, key (base64) /w== from plugin p, hash 00ff, slot 1, on a stream that is not made yet\n" +
		"event 2: filtered by plugin p\nevent 3: accepted, no key, partition 0\n... only so many events of one request are explained\n"
	if r.out != want {
		t.Errorf("got  %s\nwant %s", r.out, want)
	}
	r = command(t, "{}\n{}\n", "explain", "--stream", "s", "-o", "json", "-").expect(t, 0)
	if lines := strings.Split(r.out, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], `{"number":2,"index":1,"verdict":"rejected"`) {
		t.Errorf("%s", r.out)
	}
}

func TestExplainSaysWhatIsWrong(t *testing.T) {
	command(t, "", "explain", "-").expect(t, 2, "--stream")
	command(t, "", "explain", "--stream", "s", "-o", "xml", "-").expect(t, 2, "choose one of")
	scripted(t, reply{status: 404, body: `{"code":"unknown_stream","detail":"no such stream"}`})
	command(t, "{}\n", "explain", "--stream", "s", "-").expect(t, 1, "unknown_stream")
}

func TestExplainSaysWhereAKeyGoes(t *testing.T) {
	one := reply{status: 200, body: `{"partition":3,"why":"slot 7"}`}
	split := reply{status: 200, body: `{"partition":3,"why":"of this source","split":{"fanout":4,"by":"source"}}`}
	s := scripted(t, one, split, split, one)
	explain := func(more ...string) string {
		return command(t, "", append([]string{"explain", "--stream", "s", "--admin-url", s.URL, "--key", "a b"}, more...)...).expect(t, 0).out
	}
	if out := explain("--ordering", "strict"); out != "key \"a b\" goes to partition 3: slot 7\n" {
		t.Error(out)
	}
	if path := s.requests[0].path; path != "/v1/streams/s/explain?key=a+b&ordering=strict" {
		t.Error(path)
	}
	if out := explain(); !strings.Contains(out, "split by source over 4 partitions: --source") {
		t.Error(out)
	}
	if out := explain("--source", "till"); out != "key \"a b\" goes to partition 3: of this source\n" {
		t.Error(out)
	}
	if out := explain("-o", "json"); out != one.body+"\n" {
		t.Error(out)
	}
	command(t, "", "explain", "--stream", "s").expect(t, 2, "name a FILE", "--key KEY")
	command(t, "{}", "explain", "--stream", "s", "--source", "till", "-").expect(t, 2, "--source goes with --key")
}
