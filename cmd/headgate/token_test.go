package main

import (
	"strings"
	"testing"
)

func TestTokenOfACommand(t *testing.T) {
	t.Setenv("OTHER_TOKEN", "of-env\n")
	file := "file:" + temporary(t, "token", "of-file\nolder\n")
	for _, c := range []struct{ variable, given, want string }{
		{"", "", ""},
		{"", file, "Bearer of-file"},
		{"", "env:OTHER_TOKEN", "Bearer of-env"},
		{"", "given", "Bearer given"},
		{"of-variable", "", "Bearer of-variable"},
		{file, "", "Bearer of-file"},
		{"of-variable", "given", "Bearer given"},
	} {
		t.Setenv(tokenVariable, c.variable)
		for _, args := range [][]string{{"send", "--stream", "web", "-"}, {"stream", "show", "web"}, {"plugin", "show", "p"}} {
			s := scripted(t, reply{status: 200, body: `{"accepted":1}`})
			if c.given != "" {
				args = append(args, "--token", c.given)
			}
			command(t, "{}\n", args...).expect(t, 0)
			if got := s.requests[0].header.Get("Authorization"); got != c.want {
				t.Errorf("%v with %s=%s sends %q, want %q", args, tokenVariable, c.variable, got, c.want)
			}
		}
	}
}

func TestTokenThatIsNotThere(t *testing.T) {
	s := scripted(t, reply{status: 200})
	command(t, "{}\n", "send", "--stream", "web", "--token", "file:/does/not/exist", "-").expect(t, 2, "--token", "/does/not/exist")
	command(t, "", "tail", "--stream", "web", "--token", "env:UNSET_OF_A_TEST").expect(t, 2, "UNSET_OF_A_TEST is not set")
	t.Setenv(tokenVariable, "env:UNSET_OF_A_TEST")
	command(t, "", "stream", "list").expect(t, 2, tokenVariable)
	if len(s.requests) > 0 {
		t.Error("something was sent")
	}
}

func TestRefusedTokenSaysWhatToDo(t *testing.T) {
	s := scripted(t, refused(401, "unauthorized"))
	command(t, "{}\n", "send", "--stream", "web", "-").expect(t, 1, "unauthorized: because (give --token or HEADGATE_TOKEN)")
	if len(s.requests) != 1 {
		t.Errorf("%d attempts", len(s.requests))
	}
	t.Setenv(tokenVariable, "hunter2")
	if r := command(t, "", "send", "--help"); strings.Contains(r.out+r.stderr, "hunter2") {
		t.Error("the help shows the token")
	}
}
