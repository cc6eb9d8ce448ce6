package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/freeport"
)

// block is a fenced block of a page: commands, with the output that the text promises.
type block struct{ commands, output string }

var fenced = regexp.MustCompile("(?s)```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?")

// TestREADME runs the README as a new user would.
func TestREADME(t *testing.T) { runPage(t, "README.md", "git", "make", "curl") }

// TestHTTPGuide does the same with the walk through the HTTP API.
func TestHTTPGuide(t *testing.T) {
	runPage(t, filepath.Join("docs", "http.md"), "git", "make", "curl", "nc", "gzip")
}

// runPage runs the commands of a page in a copy of what git tracks, and compares what they print with what it says.
func runPage(t *testing.T, page string, tools ...string) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		if strings.TrimSpace(m[1]) != "make test" { // that is what runs this
			blocks = append(blocks, block{withoutMarked(m[1]), m[2]})
		}
	}
	if len(blocks) < 5 {
		t.Fatalf("found %d blocks of commands in %s", len(blocks), page)
	}
	got := runBlocks(t, blocks)
	var promised, printed strings.Builder
	for i, b := range blocks {
		if b.output != "" {
			promised.WriteString(b.output)
			printed.WriteString(got[i])
		}
	}
	if said, was := sameDigests(promised.String()), sameDigests(printed.String()); said != was {
		t.Errorf("%s has digests that differ where those printed do not, or the other way round: %s, printed %s", page, said, was)
	}
	for i, b := range blocks {
		if b.output != "" && normal(got[i]) != normal(b.output) {
			t.Errorf("%s says that\n%sprints\n%sbut it printed\n%s", page, b.commands, b.output, got[i])
		}
	}
}

func withoutMarked(commands string) string {
	var kept strings.Builder
	for line := range strings.Lines(commands) {
		if !strings.Contains(line, "# not in the test") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

const mark = "=== end of block"

// runBlocks runs the blocks in one shell, on free ports, and returns what each printed.
func runBlocks(t *testing.T, blocks []block) []string {
	t.Helper()
	dir := copyOfTree(t)
	http, admin := freeport.TCP(t), freeport.TCP(t)
	ports := strings.NewReplacer("localhost:8080", http, "localhost:9090", admin, "localhost 8080", strings.Replace(http, ":", " ", 1))
	script := "set -e\n"
	for _, b := range blocks {
		script += ports.Replace(b.commands) + "echo '" + mark + "'\n"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what the commands left running ends with them
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEMO=once", "DEMO_SET=http.listen="+http+" admin.listen="+admin,
		"HEADGATE_HTTP_LISTEN="+http, "HEADGATE_ADMIN_LISTEN="+admin, "HEADGATE_URL=http://"+http, "HEADGATE_ADMIN_URL=http://"+admin)
	cmd.WaitDelay = time.Minute
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		log, _ := os.ReadFile(filepath.Join(dir, "serve.log"))
		t.Fatalf("%v\n%s\n%s\nserve.log:\n%s", err, out, errs.String(), log)
	}
	return strings.Split(strings.ReplaceAll(string(out), mark+"\n", mark), mark)
}

// copyOfTree copies the files that git tracks, as they are in the working tree.
func copyOfTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not in a git checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		from, to := filepath.Join("..", "..", name), filepath.Join(dir, name)
		content, err := os.ReadFile(from)
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		info, statErr := os.Stat(from)
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sameDigests says which of the digests in a text, in full or the first twelve digits, are the same: each by its number.
func sameDigests(text string) string {
	known, all := map[string]int{}, ""
	for _, m := range regexp.MustCompile(`(?:sha256:|@)([0-9a-f]{12})`).FindAllStringSubmatch(text, -1) {
		if _, ok := known[m[1]]; !ok {
			known[m[1]] = len(known)
		}
		all += fmt.Sprint(known[m[1]], " ")
	}
	return all
}

// Every folder at the top is in the README's table.
func TestREADMEListsTheFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		code, _ := filepath.Glob(filepath.Join("..", "..", e.Name(), "*.go"))
		if e.IsDir() && len(code) > 0 && !strings.Contains(string(text), "\n| `"+e.Name()+"` |") {
			t.Errorf("folder %s is not in the table of README.md", e.Name())
		}
	}
}

// normal takes out what differs from run to run: digests, ids, sizes of modules, times.
func normal(output string) string {
	for _, volatile := range []string{`sha256:[0-9a-f]{64}`, `@[0-9a-f]{12}`, `\(\d+ bytes`, `"seconds":[0-9.]+`, `"(batch|request)_id":"\w{26}"`,
		`"hash":"\w+","slot":\d+,"partition":\d+`} {
		output = regexp.MustCompile(volatile).ReplaceAllString(output, fmt.Sprintf("<%s>", strings.Trim(volatile, `\`)))
	}
	return strings.TrimSpace(output)
}
