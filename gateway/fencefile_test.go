package gateway

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
)

// fenceScript is what happens to a world, as a text that people read and change: a line for each thing, # begins a comment. A file
// says at least `seed N`; what it does not say is drawn from the seed, as in a world without a file.
//
//	seed 208              # the order in which everything else happens
//	planned yes|no        # the production planner decides what changes, not chance
//	external yes|no       # the server outlives the process, and what that has sent arrives
//	rival yes|no          # there is a second controller
//	dark 2.5s 7s          # from when to when server and store answer nothing
//	crashes 12 900        # the steps at which the first process, the second and so on crash
//	times 15              # how often it is run: which goroutine runs first is not drawn
type fenceScript struct {
	seed                     uint64
	planned, external, rival *bool
	dark                     *[2]time.Duration
	crashes                  []int64 // nil: drawn
	times                    int
}

func parseFence(text string) (f fenceScript, err error) {
	f.times = 1
	seeded := false
	for n, lines := 1, bufio.NewScanner(strings.NewReader(text)); lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		seeded = seeded || words[0] == "seed"
		if err := f.take(words[0], words[1:]); err != nil {
			return f, fmt.Errorf("line %d: %q: %w", n, strings.TrimSpace(line), err)
		}
	}
	if !seeded {
		return f, fmt.Errorf("there is no seed")
	}
	return f, nil
}

func (f *fenceScript) take(what string, values []string) (err error) {
	one := ""
	if len(values) == 1 {
		one = values[0]
	}
	yes := func(to **bool) error {
		if one != "yes" && one != "no" {
			return fmt.Errorf("%s is yes or no", what)
		}
		is := one == "yes"
		*to = &is
		return nil
	}
	switch what {
	case "seed":
		f.seed, err = strconv.ParseUint(one, 10, 64)
	case "times":
		f.times, err = strconv.Atoi(one)
	case "planned":
		err = yes(&f.planned)
	case "external":
		err = yes(&f.external)
	case "rival":
		err = yes(&f.rival)
	case "dark":
		if len(values) != 2 {
			return fmt.Errorf("dark has a beginning and an end")
		}
		f.dark = new([2]time.Duration)
		for i := range values {
			if f.dark[i], err = time.ParseDuration(values[i]); err != nil {
				break
			}
		}
	case "crashes":
		f.crashes = []int64{}
		for _, v := range values {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("crashes are steps from 1")
			}
			f.crashes = append(f.crashes, n)
		}
	default:
		err = fmt.Errorf("it is seed, planned, external, rival, dark, crashes or times")
	}
	return err
}

// String is the file of a script.
func (f *fenceScript) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", f.seed)
	for _, is := range []struct {
		what string
		of   *bool
	}{{"planned", f.planned}, {"external", f.external}, {"rival", f.rival}} {
		if is.of != nil {
			fmt.Fprintf(&b, "%s %s\n", is.what, map[bool]string{true: "yes", false: "no"}[*is.of])
		}
	}
	if f.dark != nil {
		fmt.Fprintf(&b, "dark %v %v\n", f.dark[0], f.dark[1])
	}
	if f.crashes != nil {
		fmt.Fprintln(&b, strings.TrimSpace("crashes "+strings.Trim(fmt.Sprint(f.crashes), "[]")))
	}
	if f.times > 1 {
		fmt.Fprintf(&b, "times %d\n", f.times)
	}
	return b.String()
}

// script is what has happened to a world, as a file: run again, it happens again.
func (w *fenceWorld) script() *fenceScript {
	did := w.did
	did.seed, did.planned, did.external, did.dark, did.times = w.seed, &w.planned, &w.external, &w.dark, 1
	if did.crashes == nil {
		did.crashes = []int64{}
	}
	return &did
}

// Schedules that were found once, or written by hand: testdata/fences.
func TestFenceFiles(t *testing.T) {
	presses := forward.NewPresses(2)
	names, err := filepath.Glob("testdata/fences/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parseFence(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for range f.times {
				if w := runFenceScript(t, &f, presses); len(w.complaints) > 0 {
					t.Fatal(w)
				}
			}
		})
	}
}

// What a world prints of itself is a file, and that file makes the same world.
func TestFenceWorldPrintsItsFile(t *testing.T) {
	presses := forward.NewPresses(2)
	for seed := range uint64(12) {
		first := runFenceBy(t, seed, nothing, presses, fenceMode(seed%3 == 1)).script().String()
		f, err := parseFence(first)
		if err != nil {
			t.Fatal(err)
		}
		if f.String() != first {
			t.Errorf("%s\nis read as\n%s", first, f.String())
		}
		if again := runFenceScript(t, &f, presses).script(); again.String() != first {
			if again.crashes = f.crashes; again.String() != first || len(f.crashes) == 0 { // one that ended well before is not in it
				t.Errorf("%s\nbecomes\n%s", first, again)
			}
		}
	}
	for _, bad := range []string{"", "planned yes", "seed x", "seed 1\nrival perhaps", "seed 1\ndark 1s", "seed 1\ncrashes 0", "seed 1\nfire 1"} {
		if f, err := parseFence(bad); err == nil {
			t.Errorf("%q is %+v", bad, f)
		}
	}
}
