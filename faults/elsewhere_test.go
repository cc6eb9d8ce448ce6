package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// elsewhere is what a fault's tests in other packages said, a line of the log.
type elsewhere struct {
	Fault   int      `json:"number"`
	Passed  []string `json:"passed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
	Failed  []string `json:"failed,omitempty"`
}

// The numbers of faults in a test's name, which may also have those of cases: F01, F02, F04, F05 and F06 are cases.
var (
	numbers = regexp.MustCompile(`^Test((?:[A-Z]\d+)+)`)
	number  = regexp.MustCompile(`F(\d+)`)
)

func faultsOf(test string) (all []int) {
	head := numbers.FindString(test)
	for _, m := range number.FindAllStringSubmatch(head, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && !slices.Contains([]string{"01", "02", "04", "05", "06"}, m[1]) {
			all = append(all, n)
		}
	}
	return all
}

func TestFaultsOfATest(t *testing.T) {
	for name, want := range map[string]string{
		"TestF3TruncatedAtEveryByte": "[3]", "TestF05F06Sizes": "[]", "TestL05L10F61F62Modules": "[61 62]", "TestF09AStore": "[9]", "TestFull": "[]", "TestM05Fine": "[]",
	} {
		if got := fmt.Sprint(faultsOf(name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The tests of the other packages that carry the number of a fault, in their long form.
func TestElsewhere(t *testing.T) {
	long(t)
	cmd := exec.Command("go", "test", "-count=1", "-json", "-timeout", "20m", "-run", `^Test([A-Z][0-9]+)*F[0-9]`,
		"./admin", "./cmd/headgate", "./control", "./forward/...", "./gateway", "./ingest", "./internal/...", "./plugins/...")
	cmd.Dir = ".."
	out, runErr := cmd.Output()
	by := map[int]*elsewhere{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || strings.Contains(e.Test, "/") {
			continue
		}
		for _, n := range faultsOf(e.Test) {
			if by[n] == nil {
				by[n] = &elsewhere{Fault: n}
			}
			_, folder, _ := strings.Cut(e.Package, "/headgate/")
			name := folder + "." + e.Test
			switch e.Action {
			case "pass":
				by[n].Passed = append(by[n].Passed, name)
			case "skip":
				by[n].Skipped = append(by[n].Skipped, name)
			case "fail":
				by[n].Failed = append(by[n].Failed, name)
				t.Errorf("F%d: %s", n, name)
			}
		}
	}
	if runErr != nil && !t.Failed() {
		t.Errorf("%v: %v\n%.4000s", cmd.Args, runErr, out)
	}
	for _, n := range keys(by) {
		logLine(t, by[n])
		fmt.Printf("F%-2d %d tests of the packages passed, %d skipped, %d failed\n", n, len(by[n].Passed), len(by[n].Skipped), len(by[n].Failed))
	}
}

func keys(by map[int]*elsewhere) (all []int) {
	for n := range by {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// row renders it for the table.
func (e *elsewhere) row() string {
	cell := func(names []string) string {
		if len(names) == 0 {
			return ""
		}
		return "`" + strings.Join(names, "`, `") + "`"
	}
	return fmt.Sprintf("| F%d | %s | %s | %s |\n", e.Fault, cell(e.Passed), cell(e.Skipped), cell(e.Failed))
}
