// Package layers holds the architecture as a test: who may import whom, and how big a file or function may be.
package layers

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/headgate-io/headgate/"

// shared are the packages every role may use.
var shared = []string{"event", "internal/budget", "internal/failpoint", "internal/problem"}

// allowed says for each folder which folders of this module it may import besides itself and what lies below it.
// A package takes the rule of the longest folder that is a prefix of its path. nil: anything (cmd, tests of the whole).
var allowed = map[string][]string{
	"event":       {},
	"sdk/wire":    {},
	"sdk":         {},
	"sdk/session": {},
	"sdk/client":  {"sdk/session", "sdk/wire"},
	"sdk/abi":     {},
	"sdk/plugin":  {"sdk/abi"},
	"sdk/consume": {"sdk/wire", "internal/compress"},

	"internal/alarm":     {},
	"internal/auth":      {"event"},
	"internal/budget":    {},
	"internal/cases":     {},
	"internal/compress":  {},
	"internal/failpoint": {},
	"internal/leaks":     {},
	"internal/freeport":  {},
	"internal/plainfile": {},
	"internal/problem":   {"event"},
	"internal/race":      {},
	"internal/rate":      {},
	"internal/requestid": {},
	"internal/journal":   {"internal/logfolder"},
	"internal/logfolder": {"internal/wholefile"},
	"internal/memdisk":   {"internal/logfolder"},
	"internal/jsonscan":  {"event"},
	"internal/lossy":     {},
	"internal/natsd":     {"internal/wholefile"},
	"internal/layers":    {},
	"internal/ledger":    {},
	"internal/openapi":   {"internal/problem"},
	"internal/simulate":  {"partitioner", "internal/jsonscan"},
	"internal/settings":  {"internal/plainfile"},
	"internal/wholefile": {},
	"internal/udpgro":    {},
	"internal/window":    {"event"},
	"internal/certs":     {"internal/plainfile", "internal/wholefile"},

	"ingest":             append([]string{"internal/requestid", "internal/jsonscan", "internal/compress", "internal/race", "internal/window", "sdk/session", "sdk/wire"}, shared...),
	"ingest/cloudevents": {"event", "internal/jsonscan"},
	"ingest/quicdoor":    {"internal/udpgro"},
	"plugins":            append([]string{"internal/jsonscan", "sdk/abi"}, shared...),
	"partitioner":        {"event"},
	"forward":            append([]string{"internal/compress", "sdk/wire"}, shared...),
	"control":            append([]string{"internal/wholefile"}, shared...),
	"admin":              append([]string{"internal/openapi", "internal/requestid", "internal/settings"}, shared...),

	"forward/spool":       {"event", "internal/failpoint", "internal/logfolder"},
	"forward/webhook":     append([]string{"forward", "internal/wholefile"}, shared...),
	"forward/forwardtest": append([]string{"forward", "internal/compress", "internal/freeport", "sdk/consume", "sdk/wire"}, shared...),

	"bench":              {"sdk/session"}, // its programs drive the binary from outside
	"faults":             {},              // so do its tests
	"examples":           {"sdk"},
	"gateway":            nil,
	"gateway/arrange":    {"forward/jetstream", "internal/compress", "sdk/wire"},
	"gateway/datafolder": {"forward/spool", "ingest/quicdoor", "internal/wholefile"},
	"gateway/config": append([]string{"ingest", "ingest/cloudevents", "ingest/quicdoor", "plugins", "plugins/builtin", "partitioner", "forward/jetstream", "forward/webhook",
		"internal/auth", "internal/certs", "internal/compress", "internal/jsonscan", "internal/rate", "internal/settings"}, shared...),
	"cmd": nil,
}

// standardOnly may not import anything outside the standard library and this module.
var standardOnly = []string{"event", "sdk/session", "sdk/wire", "sdk/abi", "sdk/plugin", "examples/plugins", "ingest/cloudevents", "plugins/meter"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, p := range listPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		rule, prefix := ruleFor(folder)
		if prefix == "" {
			t.Errorf("%s: no rule for this folder; add one to internal/layers", folder)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours {
				if strings.Contains(imp, ".") && below(folder, standardOnly) {
					t.Errorf("%s imports %s: standard library only here", folder, imp)
				}
				continue
			}
			if below(to, []string{"cmd"}) {
				t.Errorf("%s imports %s: nothing imports cmd", folder, to)
			}
			if rule != nil && !below(to, rule) && !below(to, []string{prefix}) {
				t.Errorf("%s imports %s: not among what %s may import (%s)", folder, to, prefix, strings.Join(rule, ", "))
			}
		}
	}
}

func ruleFor(folder string) (rule []string, prefix string) {
	for p, r := range allowed {
		if below(folder, []string{p}) && len(p) > len(prefix) {
			rule, prefix = r, p
		}
	}
	return rule, prefix
}

func below(folder string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return folder == p || strings.HasPrefix(folder, p+"/")
	})
}

func listPackages(t *testing.T) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package")
	}
	return all
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// exceptions reads allow.txt: "path[:Function] limit reason" a line.
func exceptions(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("allow.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, ok := strings.Cut(line, " ")
		if !ok {
			t.Errorf("allow.txt: %q gives no reason", line)
		}
		all[what] = reason
	}
	return all
}
