package main

import (
	"strings"
	"testing"
)

func TestUsageErrorsExitWithTwo(t *testing.T) {
	file := temporary(t, "events", "{}\n")
	for _, line := range []string{
		"nope", "plugin nope", "stream nope", "send", "send a b", "send " + file, "send --stream s /does/not/exist",
		"send --stream s " + t.TempDir(), "send --stream s --batch 0 " + file, "send --stream s --ack maybe " + file,
		"send --stream s --batch x " + file, "send --stream s --nope " + file, "send --stream s --url :: " + file,
		"send --stream s --url ftp://x " + file, "send --stream s --timeout -1s " + file,
		"tail", "tail x", "tail --stream s --from x", "tail --stream s -n -1", "tail --stream s -o xml", "tail --stream s --partition -2",
		"plugin push a", "plugin push a /does/not/exist", "plugin list x", "plugin list -o xml", "plugin show",
		"plugin activate a", "plugin activate --stream s", "plugin activate --stream s a --config {", "plugin activate --stream s a --config @/does/not/exist",
		"plugin deactivate a", "plugin delete", "plugin test a", "plugin test /does/not/exist --events " + file,
		"stream list x", "stream show", "stream set s", "stream set s a=1 --file f", "stream set s --file /does/not/exist", "stream delete",
		"version x", "version -o xml", "check --nope", "check --config /does/not/exist", "serve x",
	} {
		r := command(t, "", strings.Fields(line)...).expect(t, 2, "headgate")
		if n := strings.Count(r.stderr, "\n"); n != 1 || r.out != "" {
			t.Errorf("%s: %d lines of errors, %q on stdout: %s", line, n, r.out, r.stderr)
		}
	}
}

func TestUnreachableGatewayExitsWithOne(t *testing.T) {
	s := scripted(t, reply{})
	s.Close()
	for _, line := range []string{
		"tail --stream s", "plugin list", "plugin show a", "plugin activate --stream s a", "plugin deactivate --stream s a", "plugin delete a",
		"plugin push a " + temporary(t, "a.wasm", "x"), "stream list", "stream show s", "stream set s a=1", "stream delete s",
	} {
		r := command(t, "", strings.Fields(line)...).expect(t, 1, "cannot reach the gateway at "+s.URL, "headgate serve", "--admin-url")
		if n := strings.Count(r.stderr, "\n"); n != 1 {
			t.Errorf("%s: %d lines: %s", line, n, r.stderr)
		}
	}
}

func TestRefusalsNameCodeAndDetail(t *testing.T) {
	for code, exit := range map[string]int{"unknown_plugin": 1, "plugin_in_use": 1, "bad_configuration": 2, "bad_stream_name": 2} {
		scripted(t, refused(409, code))
		command(t, "", "plugin", "delete", "a").expect(t, exit, code+": because")
	}
	scripted(t, reply{status: 502, body: "<html>"})
	command(t, "", "stream", "list").expect(t, 1, "502 Bad Gateway")
	scripted(t, reply{status: 200, body: "<html>"})
	command(t, "", "stream", "list").expect(t, 1, "does not answer like a Headgate")
	scripted(t, reply{status: 302, header: map[string][]string{"Location": {"/"}}})
	command(t, "", "stream", "list").expect(t, 1, "302")
}

func TestHelpVersionAndCompletionExitWithZero(t *testing.T) {
	for line, part := range map[string]string{
		"": "headgate", "--help": "send", "plugin": "push", "send --help": "--stream", "version": "headgate dev", "--version": "headgate dev\n", "completion bash": "bash",
		"version -o json": `"version": "dev"`,
	} {
		if r := command(t, "", strings.Fields(line)...).expect(t, 0); !strings.Contains(r.out, part) {
			t.Errorf("%q: no %s in %s", line, part, r.out)
		}
	}
}
