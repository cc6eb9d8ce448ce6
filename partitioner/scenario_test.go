package partitioner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each file of testdata/planner is a scenario: lines that say what the load is and how long it lasts, and lines that
// begin with > for what the planner does meanwhile. HEADGATE_SCENARIOS=write writes the latter anew; read what changed.
func TestPlannerScenarios(t *testing.T) {
	eachScenario(t, "testdata/planner/*.txt", func(t *testing.T, file, text string) {
		got := play(t, text)
		if os.Getenv("HEADGATE_SCENARIOS") == "write" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		was, is := strings.Split(text, "\n"), strings.Split(got, "\n")
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] {
				t.Fatalf("line %d:\n%s\nis now\n%s", i+1, was[i], is[i])
			}
		}
		if len(was) != len(is) {
			t.Fatalf("%d lines became %d", len(was), len(is))
		}
	})
}

// eachScenario plays files, of which there must be some, each as a test of its name.
func eachScenario(t *testing.T, pattern string, play func(t *testing.T, file, text string)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, file, string(text))
		})
	}
}

// scenario is one that is being played.
type scenario struct {
	*world
	out          strings.Builder
	lost         []int32
	backlog, ack []time.Duration
	names        map[string]string
}

func play(t *testing.T, text string) string {
	s := &scenario{names: map[string]string{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ">") {
			continue
		}
		s.out.WriteString(line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := s.do(t, words[0], words[1:]); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
	}
	return s.out.String()
}

func (s *scenario) do(t *testing.T, verb string, args []string) error {
	switch verb {
	case "stream":
		return s.stream(t, args)
	case "load":
		for _, a := range args {
			name, value, _ := strings.Cut(a, "=")
			if name == "rest" {
				s.rest = amount(t, value)
				continue
			}
			hi, lo := s.hash(name)
			s.names[fmt.Sprintf("%016x%016x", hi, lo)] = name
			s.keys[name] = amount(t, value)
		}
	case "lost":
		s.lost = nil
		for _, a := range args {
			s.lost = append(s.lost, int32(amount(t, a)))
		}
	case "backlog":
		s.backlog = durations(t, args)
	case "ack":
		s.ack = durations(t, args)
	case "replace": // another planner takes over
		s.planner = NewPlanner(s.planner.s)
	case "run":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		s.show(d)
	default:
		return fmt.Errorf("what is %q?", verb)
	}
	return nil
}

func (s *scenario) stream(t *testing.T, args []string) error {
	var settings Settings
	partitions := 0
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		switch name {
		case "ordering":
			settings.Ordering, _ = ParseOrdering(value)
		case "partitions":
			partitions = int(amount(t, value))
		case "target":
			settings.Target = amount(t, value)
		case "min":
			settings.Min = int(amount(t, value))
		case "max":
			settings.Max = int(amount(t, value))
		default:
			return fmt.Errorf("what is %q?", name)
		}
	}
	s.world = newWorld(t, settings, partitions)
	s.extra = func(l *Load) { l.Lost, l.Backlog, l.Ack = s.lost, s.backlog, s.ack }
	return nil
}

// show runs and writes what happened: of moves no more than the first three in a row.
func (s *scenario) show(d time.Duration) {
	s.log = nil
	s.run(d)
	moves := 0
	for _, line := range append(s.log, "") {
		for hash, name := range s.names {
			line = strings.ReplaceAll(line, hash, name)
		}
		if strings.Contains(line, " move slot ") {
			if moves++; moves > 3 {
				continue
			}
		} else {
			if moves > 3 {
				fmt.Fprintf(&s.out, "> and %d moves more\n", moves-3)
			}
			moves = 0
		}
		if line != "" {
			fmt.Fprintf(&s.out, "> %s\n", line)
		}
	}
	fmt.Fprintf(&s.out, "> %v imbalance %.2f\n", s.table, s.imbalance())
}

func amount(t *testing.T, s string) float64 {
	t.Helper()
	number, mega := strings.CutSuffix(s, "MiB")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatal(err)
	}
	if mega {
		f *= 1 << 20
	}
	return f
}

// durations reads 3=20ms 4=1s: of partition 3 and 4.
func durations(t *testing.T, args []string) []time.Duration {
	t.Helper()
	all := make([]time.Duration, MaxPartitions)
	for _, a := range args {
		p, value, _ := strings.Cut(a, "=")
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		all[int(amount(t, p))] = d
	}
	return slices.Clip(all)
}
