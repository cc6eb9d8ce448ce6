package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// following is a server that sends lines and then keeps the answer open, as a gateway does with follow=true, unless it is to end
// when nothing new comes.
func following(t *testing.T, body string) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests = append(s.requests, seen{r.Method, r.URL.RequestURI(), "", r.Header})
		io.WriteString(w, body)
		w.(http.Flusher).Flush()
		if r.URL.Query().Get("idle") == "" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("HEADGATE_ADMIN_URL", s.URL)
	return s
}

func line(number int, members string) string {
	return fmt.Sprintf(`{"stream":"s","partition":3,"gateway":"g","number":%d,%s}`+"\n", number, members)
}

func TestTailEndsAfterEnoughEvents(t *testing.T) {
	body := line(1, `"data":"{\"a\":\"<ä>\"}"`) + line(2, `"data_base64":"/w=="`) + line(3, `"data":""`) + line(4, `"data":"more"`)
	s := following(t, body)
	r := command(t, "", "tail", "--stream", "s", "-n", "3").expect(t, 0)
	if r.out != "{\"a\":\"<ä>\"}\n\xff\n\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.path != "/v1/streams/s/events?follow=true&from=now&limit=3" || q.header.Get("Accept") != "application/x-ndjson" {
		t.Errorf("%+v", q)
	}
	r = command(t, "", "tail", "--stream", "s", "-n", "4", "-o", "json", "--from", "17", "--partition", "0").expect(t, 0)
	if r.out != body {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[1]; q.path != "/v1/streams/s/events?follow=true&from=17&limit=4&partition=0" {
		t.Errorf("%+v", q)
	}
}

func TestTailEndsWhenNothingNewCame(t *testing.T) {
	s := following(t, line(1, `"data":"x"`))
	for _, output := range []string{"data", "json"} {
		if r := command(t, "", "tail", "--stream", "s", "--wait", "300ms", "-o", output).expect(t, 0); strings.Count(r.out, "\n") != 1 {
			t.Errorf("%q", r.out)
		}
	}
	r := command(t, "", "tail", "--stream", "s", "--wait", "300ms", "-o", "frames").expect(t, 0)
	for _, q := range s.requests {
		if q.path[:strings.Index(q.path, "?")+1] != "/v1/streams/s/events?" || !strings.Contains(q.path, "idle=300ms") {
			t.Error(q.path)
		}
	}
	if r.out != line(1, `"data":"x"`) || s.requests[2].header.Get("Accept") != "application/octet-stream" {
		t.Errorf("%q %v", r.out, s.requests[2].header)
	}
}

func TestTailEndsWhenInterrupted(t *testing.T) {
	following(t, line(1, `"data":"x"`))
	ctx, cancel := context.WithCancel(t.Context())
	out := &onWrite{then: cancel}
	code := run(ctx, []string{"tail", "--stream", "s"}, streams{strings.NewReader(""), out, io.Discard}, (&fakeClock{}).clock())
	if code != 0 || out.text != "x\n" {
		t.Errorf("exit code %d, %q", code, out.text)
	}
}

// onWrite calls then when something is written.
type onWrite struct {
	text string
	then func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.text += string(p)
	w.then()
	return len(p), nil
}

func TestF04TailGoesOnBehindAnEventThatCannotBeShown(t *testing.T) {
	body := line(1, `"data":"a"`) + line(2, `"error":"event_too_large","size":9000000`) + line(3, `"data":"b"`)
	following(t, body)
	r := command(t, "", "tail", "--stream", "s", "-n", "3").expect(t, 1, "partition 3, event 2: event_too_large, 9000000 bytes", "1 events could not be shown")
	if r.out != "a\nb\n" {
		t.Errorf("%q", r.out)
	}
	if r := command(t, "", "tail", "--stream", "s", "-n", "3", "-o", "json").expect(t, 0); r.out != body {
		t.Errorf("%q", r.out)
	}
}

func TestTailFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		part   string
	}{
		"refused":        {refused(501, "not_readable"), "not_readable: because"},
		"ended":          {reply{status: 200, body: line(1, `"data":"x"`)}, "ended the answer"},
		"broken in text": {reply{status: 200, body: line(1, `"data":"x"`) + `{"error":"internal","detail":"disk"}` + "\n"}, "internal: disk"},
		"half a line":    {reply{status: 200, body: `{"number":1`}, "broke off"},
		"foreign":        {reply{status: 200, body: "<html>\n"}, "does not answer like a Headgate"},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, c.answer)
			command(t, "", "tail", "--stream", "s").expect(t, 1, c.part)
		})
	}
	scripted(t, reply{status: 200, body: "frames"})
	if r := command(t, "", "tail", "--stream", "s", "-o", "frames").expect(t, 1, "ended the answer"); r.out != "frames" {
		t.Errorf("%q", r.out)
	}
	if r := command(t, "", "tail", "--stream", "s", "-o", "frames", "-n", "1").expect(t, 0); r.out != "frames" {
		t.Errorf("%q", r.out)
	}
}
