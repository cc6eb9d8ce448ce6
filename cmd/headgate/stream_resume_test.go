package main

import "testing"

func TestStreamResume(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"resumed_partitions":3}`})
	if r := command(t, "", "stream", "resume", "web").expect(t, 0); r.out != "web: 3 partitions go on\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.method != "POST" || q.path != "/v1/streams/web/resume" {
		t.Errorf("%+v", q)
	}
}
