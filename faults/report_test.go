package faults

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// result is one run, a line of the log.
type result struct {
	Fault   string  `json:"fault"` // F1
	What    string  `json:"what"`
	Seed    uint64  `json:"seed"`
	Cycles  int     `json:"cycles"` // crashes, cuts, failures
	Recover float64 `json:"recover_s"`
	OK      bool    `json:"ok"`
	Note    string  `json:"note,omitempty"`
	account
}

// scale says how much is to be done: nothing in FAULTS is the quick form, "full" the matrix, a number that many crashes.
func scale(quick, full, share int) int {
	switch n, err := strconv.Atoi(os.Getenv("FAULTS")); {
	case err == nil:
		return max(full, n/share)
	case os.Getenv("FAULTS") == "full":
		return full
	}
	return quick
}

// long skips a test of which the quick form has no place.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FAULTS") == "" {
		t.Skip("only with make test-faults")
	}
}

// record notes a run, which it returns with a verdict, and fails the test when something is wrong in it.
func record(t testing.TB, r result) result {
	t.Helper()
	for _, e := range r.examples {
		t.Errorf("%s %s, seed %d: %s", r.Fault, r.What, r.Seed, e)
	}
	r.OK = r.account.ok() && !t.Failed()
	logLine(t, r)
	return r
}

// logLine adds a line to the log, if there is to be one.
func logLine(t testing.TB, v any) {
	t.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("FAULTS_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// line is what is printed of the runs of one fault.
func line(runs []result) string {
	sum := total(runs)
	text := fmt.Sprintf("%-3s %-38s %4d runs %5d faults  acked %9s  lost %d dup %d phantom %d corrupt %d order %d  recovered in %.2f s",
		sum.Fault, sum.What, len(runs), sum.Cycles, thousands(sum.Acked), sum.Lost, sum.Dup, sum.Phantom, sum.Corrupt, sum.Order, sum.Recover)
	if sum.Note != "" {
		text += "  " + sum.Note
	}
	return text + "  " + verdict(sum.OK)
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}

// total adds runs up; the longest recovery counts.
func total(runs []result) (sum result) {
	sum.OK = true
	for _, r := range runs {
		sum.Fault, sum.What, sum.Note = r.Fault, r.What, cmp.Or(r.Note, sum.Note)
		sum.Cycles += r.Cycles
		sum.Recover = max(sum.Recover, r.Recover)
		sum.OK = sum.OK && r.OK
		sum.Sent += r.Sent
		sum.Acked += r.Acked
		sum.Accepted += r.Accepted
		sum.Found += r.Found
		sum.Gone += r.Gone
		sum.Lost += r.Lost
		sum.Phantom += r.Phantom
		sum.Dup += r.Dup
		sum.Corrupt += r.Corrupt
		sum.Order += r.Order
	}
	return sum
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// table renders the log as a page.
func table(log string) (string, error) {
	f, err := os.Open(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var others strings.Builder
	var order []string
	by := map[string][]result{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r struct {
			result
			elsewhere
			Fault string `json:"fault"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return "", err
		}
		if r.Fault == "" {
			others.WriteString(r.row())
			continue
		}
		r.result.Fault = r.Fault
		key := r.Fault + r.What
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], r.result)
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Faults\n\nThe last run of `make test-faults`, %s. Columns are explained in [docs/faults.md](../../docs/faults.md); one line a run\nis in [%s](%[2]s).\n\n",
		time.Now().UTC().Format(time.DateOnly), filepath.Base(log))
	page.WriteString("| fault | what | runs | faults | sent | acked | found | lost | dup | phantom | corrupt | order | recovered | |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, key := range order {
		sum := total(by[key])
		fmt.Fprintf(&page, "| %s | %s | %d | %s | %s | %s | %s | %d | %d | %d | %d | %d | %.2f s | %s |\n", sum.Fault, sum.What, len(by[key]),
			thousands(sum.Cycles), thousands(sum.Sent), thousands(sum.Acked), thousands(sum.Found),
			sum.Lost, sum.Dup, sum.Phantom, sum.Corrupt, sum.Order, sum.Recover, strings.TrimSpace(verdict(sum.OK)+" "+sum.Note))
	}
	if others.Len() > 0 {
		page.WriteString("\nTests of the packages that carry the number of a fault in their names:\n\n| fault | passed | skipped | failed |\n|---|---|---|---|\n")
		page.WriteString(others.String())
	}
	return page.String(), nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := product(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	if log := os.Getenv("FAULTS_LOG"); log != "" {
		page, err := table(log)
		if err == nil {
			err = os.WriteFile(strings.TrimSuffix(log, ".jsonl")+".md", []byte(page), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
