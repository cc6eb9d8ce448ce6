package main

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
)

// collect returns the bodies, and the events with their lines.
func collect(src batches) (bodies, events []string, lines []int, err error) {
	for {
		b, err := src.next()
		if err == io.EOF {
			return bodies, events, lines, nil
		}
		if b != nil && len(b.starts) > 0 {
			bodies = append(bodies, string(b.body))
			for i := range b.starts {
				events = append(events, string(b.event(i)))
			}
			lines = append(lines, b.lines...)
		}
		if err != nil {
			return bodies, events, lines, err
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name, mediaType, file string
		bodies, events        []string
		lines                 []int
	}{
		{"lines", ndjson, "1\n2\n3\n", []string{"1\n2\n", "3\n"}, []string{"1", "2", "3"}, []int{1, 2, 3}},
		{"no last newline", ndjson, "1\n2", []string{"1\n2\n"}, []string{"1", "2"}, []int{1, 2}},
		{"blank lines", ndjson, "\n1\r\n \t\n\r\n2\n\n", []string{"1\r\n2\n"}, []string{"1", "2"}, []int{2, 5}},
		{"parameters", "Application/JSONL; charset=utf-8", "1\n2\n3\n", []string{"1\n2\n", "3\n"}, []string{"1", "2", "3"}, []int{1, 2, 3}},
		{"text keeps white space", "text/plain", "a\n \n\nb\n", []string{"a\n \n", "b\n"}, []string{"a", " ", "b"}, []int{1, 2, 4}},
		{"lengths", "application/vnd.headgate.events", "\x01a\x00\x02\n\n", []string{"\x01a\x00", "\x02\n\n"}, []string{"a", "", "\n\n"}, nil},
		{"whole", "application/json", "[1,\n2]\n", []string{"[1,\n2]\n"}, []string{"[1,\n2]\n"}, nil},
		{"structured", "application/cloudevents+json", "{ \"a\":1}\n", []string{"{ \"a\":1}"}, []string{"{ \"a\":1}"}, nil},
		{"structured, several", "application/cloudevents+json", "{}\n1 [2]", []string{"{}", "1", "[2]"}, []string{"{}", "1", "[2]"}, nil},
		{"structured, an array", "application/cloudevents+json", "[1 ,2]", []string{"1", "2"}, []string{"1", "2"}, nil},
		{"batch", "application/cloudevents-batch+json; charset=utf-8", "\n[{\"a\": [1]} , 2,\n3]\n", []string{"[{\"a\": [1]},2]", "[3]"}, []string{"{\"a\": [1]}", "2", "3"}, nil},
		{"batch of a file of values", "application/cloudevents-batch+json", "1\n2\n3", []string{"[1,2]", "[3]"}, []string{"1", "2", "3"}, nil},
		{"empty batch", "application/cloudevents-batch+json", " [ ] ", nil, nil, nil},
		{"empty file as a batch", "application/cloudevents-batch+json", "", nil, nil, nil},
		{"empty", ndjson, "", nil, nil, nil},
		{"empty lengths", "application/vnd.headgate.events", "", nil, nil, nil},
	} {
		bodies, events, lines, err := collect(cut(strings.NewReader(c.file), c.mediaType, 2))
		if err != nil || !reflect.DeepEqual(bodies, c.bodies) || !reflect.DeepEqual(events, c.events) || !reflect.DeepEqual(lines, c.lines) {
			t.Errorf("%s: %q %q %v %v", c.name, bodies, events, lines, err)
		}
	}
}

func TestCutBoundsBytes(t *testing.T) {
	line := strings.Repeat("x", batchBytes/2) + "\n"
	bodies, events, _, err := collect(cut(strings.NewReader(strings.Repeat(line, 5)), ndjson, 500))
	if err != nil || len(bodies) != 3 || len(events) != 5 {
		t.Errorf("%d bodies, %d events, %v", len(bodies), len(events), err)
	}
}

func TestCutRefusesWhatIsTooLong(t *testing.T) {
	long := strings.Repeat("x", eventBytes+1<<20)
	for mediaType, file := range map[string]string{
		ndjson:                            "1\n" + long,
		"application/json":                long,
		"application/vnd.headgate.events": "\x011\xff\xff\xff\xff\x7f",
	} {
		bodies, _, _, err := collect(cut(strings.NewReader(file), mediaType, 500))
		if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
			t.Errorf("%s: %v", mediaType, err)
		}
		if mediaType != "application/json" && len(bodies) != 1 {
			t.Errorf("%s: what comes before is not given: %d", mediaType, len(bodies))
		}
	}
}

// TestCutLengthsTruncated cuts the file at each byte: whole events come, and then the end or an error.
func TestCutLengthsTruncated(t *testing.T) {
	file := "\x01a\x03bcd\x80\x01" + strings.Repeat("e", 128)
	ends := map[int]int{0: 0, 2: 1, 6: 2, len(file): 3} // whole events by length of the file
	for n := range len(file) + 1 {
		_, events, _, err := collect(cut(strings.NewReader(file[:n]), "application/vnd.headgate.events", 2))
		if want, whole := ends[n]; whole != (err == nil) || whole && len(events) != want {
			t.Errorf("at %d: %d events, %v", n, len(events), err)
		}
	}
}

// FuzzCutLines: the events are exactly the file's lines that are not blank.
func FuzzCutLines(f *testing.F) {
	f.Add([]byte("a\n\nb\r\n \nc"), 2)
	f.Fuzz(func(t *testing.T, file []byte, n int) {
		_, events, lines, err := collect(cut(bytes.NewReader(file), ndjson, 1+n&7))
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for number, line := range bytes.Split(file, []byte("\n")) {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if want := string(bytes.TrimSuffix(line, []byte("\r"))); i >= len(events) || events[i] != want || lines[i] != number+1 {
				t.Fatalf("line %d is missing in %q %v", number+1, events, lines)
			}
			i++
		}
		if i != len(events) {
			t.Fatalf("%d events of %d lines", len(events), i)
		}
	})
}

func TestCutValuesThatBreakOff(t *testing.T) {
	for file, want := range map[string]string{
		"[1,2": "inside the array", "[1,2]3": "follows the array", "[1,2,{": "", "[1,2 3]": "", "1\n2\n{\"a": "", "[1,2,]": "", "[1,2,": "inside the array",
	} {
		bodies, events, _, err := collect(cut(strings.NewReader(file), "application/cloudevents-batch+json", 5))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "event 3") {
			t.Errorf("%s: %v", file, err)
		}
		if len(bodies) != 1 || bodies[0] != "[1,2]" || len(events) != 2 {
			t.Errorf("%s: %q %q", file, bodies, events)
		}
	}
}
