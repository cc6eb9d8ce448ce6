package layers

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?ms)^```.*?^```")
	// unslugged are the characters that an anchor on GitHub leaves out.
	unslugged = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// pages are all documents by their path, without what stands in blocks of code.
func pages(t *testing.T) map[string]string {
	list, err := exec.Command("git", "-C", "../..", "ls-files", "*.md").Output()
	if err != nil || len(list) == 0 {
		t.Skipf("no files of git: %v", err)
	}
	all := map[string]string{}
	for _, name := range strings.Fields(string(list)) {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = code.ReplaceAllString(string(text), "")
	}
	return all
}

// anchors are the headings of a page, as links name them.
func anchors(text string) map[string]int {
	all := map[string]int{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")]++
	}
	return all
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			file, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat("../../" + to); err != nil {
				t.Errorf("%s: %s leads nowhere", name, l[1])
			} else if page, ok := all[to]; ok && anchor != "" && anchors(page)[anchor] == 0 {
				t.Errorf("%s: %s has no heading #%s", name, to, anchor)
			}
		}
	}
}

// A question of RATIONALE is there once, in one of the sections that the list on top names.
func TestRationaleHasEachEntryOnce(t *testing.T) {
	page, ok := pages(t)["docs/RATIONALE.md"]
	if !ok {
		t.Fatal("there is no such page")
	}
	for anchor, n := range anchors(page) {
		if n > 1 {
			t.Errorf("#%s is there %d times", anchor, n)
		}
	}
	top, _, _ := strings.Cut(page, "\n## ")
	for _, h := range regexp.MustCompile("(?m)^## (.*)$").FindAllString(page, -1) {
		if anchor := "(#" + strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(h[3:]), ""), " ", "-") + ")"; !strings.Contains(top, anchor) {
			t.Errorf("%q is not in the list of sections: a question begins with ###", h)
		}
	}
}
