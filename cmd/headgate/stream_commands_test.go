package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestStreamListShowDelete(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"streams":[{"name":"web","revision":3,"managed":"api","partitions":16,"codec":"zstd","backend":"local","stored":{"bytes":1572864,"limit":10485760}}]}`})
	r := command(t, "", "stream", "list").expect(t, 0)
	if fields := strings.Fields(strings.Split(r.out, "\n")[1]); strings.Join(fields, " ") != "web 3 api 16 zstd local 1.5 of 10.0MiB" {
		t.Errorf("%s", r.out)
	}
	if r := command(t, "", "stream", "list", "-o", "json").expect(t, 0); !json.Valid([]byte(r.out)) {
		t.Errorf("%s", r.out)
	}
	s.answers = []reply{{status: 200, body: `{"name":"web","key":{"json":"/<a>"}}`}}
	if r := command(t, "", "stream", "show", "web").expect(t, 0); !strings.Contains(r.out, `"json": "/<a>"`) {
		t.Errorf("%s", r.out)
	}
	s.answers = []reply{{status: 204}}
	command(t, "", "stream", "delete", "web").expect(t, 0)
	if q := s.requests[3]; q.method != "DELETE" || q.path != "/v1/streams/web" {
		t.Errorf("%+v", q)
	}
}

var shownStream = reply{status: 200, header: http.Header{"Etag": {`"3"`}},
	body: `{"name":"web","revision":3,"managed":"api","key":{"json":"/a","required":true},"big":2882429806056571124}`}

func TestStreamSetChangesOneSetting(t *testing.T) {
	s := scripted(t, shownStream, reply{status: 200, body: `{"name":"web","revision":4}`})
	r := command(t, "", "stream", "set", "web", "key.json=/b", "limits.event=2MiB", "key.required=", "plugins=[{name: p}]").expect(t, 0)
	if r.out != "web: revision 4\n" {
		t.Errorf("%q", r.out)
	}
	q := s.requests[1]
	want := `{"big":2882429806056571124,"key":{"json":"/b"},"limits":{"event":"2MiB"},"managed":"api","name":"web","plugins":[{"name":"p"}],"revision":3}`
	if q.method != "PUT" || q.body != want || q.header.Get("If-Match") != `"3"` {
		t.Errorf("%+v", q)
	}
}

func TestStreamSetCreates(t *testing.T) {
	s := scripted(t, refused(404, "unknown_stream"), reply{status: 201, body: `{"name":"web","revision":1}`})
	command(t, "", "stream", "set", "web", "partitions=4").expect(t, 0)
	if q := s.requests[1]; q.body != `{"partitions":4}` || q.header.Get("If-None-Match") != "*" || q.header.Get("If-Match") != "" {
		t.Errorf("%+v", q)
	}
}

func TestStreamSetMakesItsChangeAgainAfterAConflict(t *testing.T) {
	s := scripted(t, shownStream, refused(412, "etag_mismatch"), shownStream, reply{status: 200, body: `{"name":"web","revision":5}`})
	command(t, "", "stream", "set", "web", "codec=s2").expect(t, 0)
	if len(s.requests) != 4 {
		t.Errorf("%d requests", len(s.requests))
	}
	s = scripted(t, shownStream)
	s.answers = nil
	for range changes {
		s.answers = append(s.answers, shownStream, refused(412, "etag_mismatch"))
	}
	command(t, "", "stream", "set", "web", "codec=s2").expect(t, 1, "others keep changing web")
}

func TestStreamSetFromAFile(t *testing.T) {
	s := scripted(t, reply{status: 201, body: `{"name":"web","revision":1}`})
	command(t, "", "stream", "set", "web", "--file", temporary(t, "f.yaml", "key: {json: /a}\npartitions: 4\n")).expect(t, 0)
	command(t, "", "stream", "set", "web", "--file", temporary(t, "f.json", `{"key":{"json":"/a"},"partitions":4}`)).expect(t, 0)
	for _, q := range s.requests {
		if q.method != "PUT" || q.body != `{"key":{"json":"/a"},"partitions":4}` || q.header.Get("If-Match") != "" {
			t.Errorf("%+v", q)
		}
	}
	command(t, "", "stream", "set", "web", "--file", temporary(t, "f.yaml", "a: [")).expect(t, 2, "f.yaml")
}

func TestStreamSetRefused(t *testing.T) {
	scripted(t, shownStream, refused(409, "managed_by_file"))
	command(t, "", "stream", "set", "web", "codec=s2").expect(t, 1, "managed_by_file")
	scripted(t, shownStream, refused(400, "bad_configuration"))
	command(t, "", "stream", "set", "web", "codec=nope").expect(t, 2, "bad_configuration")
	scripted(t, shownStream)
	command(t, "", "stream", "set", "web", "codec").expect(t, 2, "path=value")
	command(t, "", "stream", "set", "web", "=1").expect(t, 2, "is not a path")
	command(t, "", "stream", "set", "web", "key.json.more=1").expect(t, 2, "key.json has a value")
	command(t, "", "stream", "set", "web", "key=[").expect(t, 2, "is not YAML")
}

func TestStreamPurge(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"purged_runs":12}`})
	if r := command(t, "", "stream", "purge", "web", "--older-than", "7d").expect(t, 0); !strings.Contains(r.out, "12 runs removed") {
		t.Errorf("%s", r.out)
	}
	command(t, "", "stream", "purge", "web", "--keep", "0").expect(t, 0)
	if q := s.requests; q[0].method != "POST" || q[0].path != "/v1/streams/web/purge" || string(q[0].body) != `{"older_than":"7d"}` || string(q[1].body) != `{"keep":0}` {
		t.Errorf("%+v", q)
	}
	command(t, "", "stream", "purge", "web").expect(t, 2)
	command(t, "", "stream", "purge", "web", "--keep", "1", "--older-than", "7d").expect(t, 2)
}
