package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/race"
)

// filterOf reads rules as JSON, which is YAML as well.
func filterOf(t testing.TB, rules string) *Filter {
	t.Helper()
	var all []Rule
	d := json.NewDecoder(strings.NewReader(rules))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	f, err := NewFilter(all, nil)
	if err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	return f
}

// sift lets lines of JSON through a filter, as ingest does.
func sift(t testing.TB, f *Filter, b *event.Batch, lines ...string) {
	t.Helper()
	s := jsonscan.New(64, f.Watch())
	for _, line := range lines {
		if fault := s.Check([]byte(line)); fault.Code != "" {
			t.Fatalf("%s: %v", line, fault)
		}
		b.Events = append(b.Events, event.Event{Data: []byte(line), Fields: s.EventFields()})
		f.Sift(b, len(b.Events)-1, s.Fields[:])
	}
}

// Each condition with events that fit, and such that don't.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		condition string
		fit, not  []string // values at /v; empty: it is not there
	}{
		{`"eq": "a"`, []string{`"a"`, `"\u0061"`}, []string{`"b"`, `"ab"`, `""`, `null`, ``, `1`, `["a"]`, `{"a":1}`, `true`}},
		{`"eq": ""`, []string{`""`}, []string{`" "`, `null`, ``}},
		{`"eq": 200`, []string{`200`, `200.0`, `2e2`, `0.2e3`}, []string{`201`, `"200"`, `-200`, ``, `null`, `true`, `2000`}},
		{`"eq": 0`, []string{`0`, `-0`, `0.0`}, []string{`1`, `false`, `""`}},
		{`"eq": -1.5`, []string{`-1.5`, `-15e-1`}, []string{`1.5`, `-1`}},
		{`"eq": true`, []string{`true`}, []string{`false`, `"true"`, `1`, `null`, ``}},
		{`"eq": false`, []string{`false`}, []string{`true`, `null`, ``, `0`}},
		{`"ne": "a"`, []string{`"b"`, ``, `null`, `1`, `[]`}, []string{`"a"`}},
		{`"lt": 500`, []string{`499`, `-1`, `499.99`, `1e2`, `-1e400`}, []string{`500`, `501`, `"1"`, ``, `null`, `1e400`, `[1]`}},
		{`"le": 500`, []string{`500`, `500.0`, `3`}, []string{`501`, `500.01`}},
		{`"gt": 500`, []string{`501`, `500.01`, `1e9`, `99999999999999999999`}, []string{`500`, `499`, `"900"`, ``}},
		{`"ge": 500, "lt": 600`, []string{`500`, `599`}, []string{`600`, `499`, ``}},
		{`"lt": "b"`, []string{`"a"`, `""`, `"azzz"`, `"B"`}, []string{`"b"`, `"ba"`, `1`, ``}},
		{`"ge": "2026-01-01"`, []string{`"2026-01-01T00:00:00Z"`, `"2027"`}, []string{`"2025-12-31"`, ``}},
		{`"in": ["a", 1, 2.5, true]`, []string{`"a"`, `1`, `1.0`, `2.5`, `true`}, []string{`"b"`, `"1"`, `2`, `false`, `null`, ``, `[1]`}},
		{`"in": [1, 2, 3]`, []string{`1`, `3`, `3.0`}, []string{`4`, `"1"`}},
		{`"not_in": ["a", "b"]`, []string{`"c"`, ``, `null`, `1`}, []string{`"a"`, `"\u0062"`}},
		{`"exists": true`, []string{`1`, `""`, `false`, `[]`, `{}`}, []string{``, `null`}},
		{`"exists": false`, []string{``, `null`}, []string{`1`, `""`, `false`}},
		{`"exists": true, "ne": "a"`, []string{`"b"`, `1`}, []string{``, `null`, `"a"`}},
		{`"prefix": "/health"`, []string{`"/health"`, `"/healthz"`, `"\/health"`}, []string{`"/heal"`, `"x/health"`, `1`, ``, `["/health"]`}},
		{`"suffix": ".css"`, []string{`"a.css"`, `".css"`}, []string{`"css"`, `".css?"`}},
		{`"contains": "bot"`, []string{`"Googlebot/2.1"`, `"\u0062ot"`}, []string{`"Bot"`, `""`, ``}},
		{`"prefix": "ab", "suffix": "bc"`, []string{`"abc"`, `"abbc"`}, []string{`"ab"`, `"bc"`}},
		{`"matches": "^GET /(css|js)/"`, []string{`"GET /css/a"`, `"GET \/js/"`}, []string{`"POST /css/a"`, `"xGET /css/"`, `1`, ``}},
	} {
		f := filterOf(t, `[{"drop": {"json": "/v", `+c.condition+`}}]`)
		for fits, values := range map[bool][]string{true: c.fit, false: c.not} {
			for _, v := range values {
				line := `{"x":0,"v":` + v + `}`
				if v == "" {
					line = `{"x":0}`
				}
				b := &event.Batch{}
				sift(t, f, b, line)
				if got := b.Events[0].Verdict == event.Filtered; got != fits || len(b.Errors) > 0 {
					t.Errorf("%s: %s: fits %v", c.condition, line, got)
				}
			}
		}
	}
}

// Whole numbers of up to 18 digits are compared exactly, which float64 cannot.
func TestWholeNumbersAreExact(t *testing.T) {
	f, err := NewFilter([]Rule{{Drop: &Condition{JSON: "/v", Eq: 288242980605657112}}, {Drop: &Condition{JSON: "/v", In: []any{288242980605657114}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &event.Batch{}
	sift(t, f, b, `{"v":288242980605657111}`, `{"v":288242980605657112}`, `{"v":288242980605657113}`, `{"v":288242980605657114}`)
	for i, want := range []event.Verdict{event.Keep, event.Filtered, event.Keep, event.Filtered} {
		if got := b.Events[i].Verdict; got != want {
			t.Errorf("%s: %v", b.Events[i].Data, got)
		}
	}
}

func TestConditionsTogether(t *testing.T) {
	const a, b, c = `{"json":"/a","eq":1}`, `{"json":"/b","eq":1}`, `{"json":"/c/0","eq":1}`
	for condition, want := range map[string]string{ // of the events with a, b and c being 000, 001, 010 ... 111
		`{"all":[` + a + `,` + b + `,` + c + `]}`:                   "00000001",
		`{"any":[` + a + `,` + b + `,` + c + `]}`:                   "01111111",
		`{"not":` + a + `}`:                                         "11110000",
		`{"all":[` + a + `,{"not":{"any":[` + b + `,` + c + `]}}]}`: "00001000",
		`{"any":[{"all":[` + a + `,` + b + `]},{"not":` + c + `}]}`: "10101011",
		`{"not":{"not":{"all":[` + a + `]}}}`:                       "00001111",
	} {
		f := filterOf(t, `[{"drop":`+condition+`}]`)
		got := ""
		for n := range 8 {
			batch := &event.Batch{}
			sift(t, f, batch, fmt.Sprintf(`{"a":%d,"b":%d,"c":[%d]}`, n>>2, n>>1&1, n&1))
			got += map[bool]string{true: "1", false: "0"}[batch.Events[0].Verdict == event.Filtered]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
}

// The first rule that means an event counts, and is named to the client, in trials and in the tallies.
func TestRulesInOrder(t *testing.T) {
	f := filterOf(t, `[{"name":"debug","drop":{"json":"/level","eq":"debug"}},
		{"reject":{"json":"/user","exists":false},"reason":"say who you are"},
		{"name":"own","keep":{"header":"X-Tenant","in":["a","b"]}},
		{"reject":{"json":"/user","prefix":"root"}}]`)
	lines := []string{`{"level":"debug"}`, `{"level":"info"}`, `{"user":"ada"}`, `{"user":"root"}`, `{"user":"x","level":"debug"}`}
	for _, tt := range []struct{ tenant, verdicts, stages string }{
		{"a", "filtered rejected accepted rejected filtered", "filter debug,filter 2,,filter 4,filter debug"},
		{"c", "filtered rejected filtered filtered filtered", "filter debug,filter 2,filter own,filter own,filter debug"},
	} {
		for _, trial := range []bool{false, true} {
			b := &event.Batch{Trial: trial, Headers: []event.Attr{{Name: []byte("x-tenant"), Value: []byte(tt.tenant)}}}
			sift(t, f, b, lines...)
			b.Trace("syntax")
			var verdicts, stages []string
			for i := range b.Events {
				verdicts = append(verdicts, b.Events[i].Verdict.String())
				if trial {
					stages = append(stages, b.Traces[i].By)
				}
			}
			if got := strings.Join(verdicts, " "); got != tt.verdicts {
				t.Errorf("%s: %s", tt.tenant, got)
			}
			if got := strings.Join(stages, ","); trial && got != tt.stages {
				t.Errorf("%s: %s", tt.tenant, got)
			}
			if e := b.Errors[0]; e.Index != 1 || e.Code != event.FilterRejected || e.Detail != "say who you are (filter 2)" {
				t.Errorf("%+v", e)
			}
		}
	}
	want := []Tally{{"debug", false, 4}, {"2", true, 2}, {"own", false, 2}, {"4", true, 1}}
	if got := f.Tallies(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
	sift(t, f, &event.Batch{DecodedBefore: true}, lines...) // was counted before
	if got := f.Tallies(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counted again: %v", got)
	}
	next := filterOf(t, `[{"name":"own","keep":{"json":"/x","eq":1}},{"name":"debug","reject":{"json":"/x","eq":2}}]`)
	next.Continue(f)
	if got := next.Tallies(); got[0].Events != 2 || got[1].Events != 0 {
		t.Errorf("%v", got)
	}
}

// Texts of headers and attributes may be meant as numbers or booleans; those in JSON say themselves what they are.
func TestTextsThatAreMeantAsNumbers(t *testing.T) {
	for _, c := range []struct {
		condition, value string
		fits             bool
	}{
		{`"eq": 7`, "7", true}, {`"eq": 7`, "7.0", true}, {`"eq": 7`, "0x7", false}, {`"eq": 7`, "seven", false}, {`"eq": "7"`, "7", true}, {`"eq": "7"`, "7.0", false},
		{`"ge": 7`, "10", true}, {`"ge": "7"`, "10", false}, {`"ge": 7`, "", false}, {`"ge": 0`, "inf", false}, {`"ge": 0`, "nan", false},
		{`"eq": true`, "true", true}, {`"eq": true`, "TRUE", false}, {`"in": [1, true, "x"]`, "true", true}, {`"in": [1, true, "x"]`, "1.0", true}, {`"in": [1, true, "x"]`, "x", true},
		{`"not_in": [1]`, "1", false}, {`"not_in": [1]`, "2", true},
	} {
		for _, where := range []string{"header", "ce"} {
			f := filterOf(t, `[{"drop": {"`+where+`": "seven", `+c.condition+`}}]`)
			b := &event.Batch{Events: []event.Event{{}}}
			if attrs := []event.Attr{{Name: []byte("seven"), Value: []byte(c.value)}}; where == "ce" {
				b.Events[0].Attrs = attrs
			} else {
				b.Headers = attrs
			}
			f.Sift(b, 0, nil)
			if got := b.Events[0].Verdict == event.Filtered; got != c.fits {
				t.Errorf("%s %s: %q: %v", where, c.condition, c.value, got)
			}
		}
	}
}

// G09: where a name that a filter looks at occurs twice, the event is refused, as for a key.
func TestG09FiltersRefuseAmbiguousNames(t *testing.T) {
	f := filterOf(t, `[{"drop":{"all":[{"json":"/x","eq":1},{"not":{"json":"/qty","lt":0}}]}}]`)
	b := &event.Batch{}
	sift(t, f, b, `{"x":1,"qty":1,"qty":-1}`, `{"x":2,"qty":1,"qty":-1}`)
	if b.Events[0].Verdict != event.Rejected || b.Errors[0].Code != event.DuplicateName || !strings.Contains(b.Errors[0].Detail, "filter 1") {
		t.Errorf("%v %v", b.Events[0].Verdict, b.Errors)
	}
	if b.Events[1].Verdict != event.Keep {
		t.Error("an event was refused for a name that nobody had to look at")
	}
	if got := f.Tallies()[0].Events; got != 0 {
		t.Errorf("%d events", got)
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	many := strings.Repeat(`{"json":"/a","eq":1},`, mostConditions) + `{"json":"/a","eq":1}`
	pointers := ""
	for i := range jsonscan.MaxWatch {
		pointers += fmt.Sprintf(`,{"json":"/p%d","eq":1}`, i)
	}
	deep := strings.Repeat(`{"not":`, mostNested) + `{"json":"/a","eq":1}` + strings.Repeat(`}`, mostNested)
	for rules, want := range map[string]string{
		`{}`: "0: wants one of drop, keep and reject",
		`{"drop":{"json":"/a","eq":1},"keep":{"json":"/a","eq":1}}`: "0: wants one of drop, keep and reject",
		`{"drop":{}}`: "0.drop: wants one of all, any and not",
		`{"drop":{"json":"/a","header":"b","eq":1}}`:     "0.drop: wants one of",
		`{"drop":{"eq":1}}`:                              "0.drop: wants one of",
		`{"drop":{"all":[{"json":"/a","eq":1}],"eq":1}}`: "0.drop: eq and the like belong beside json, header or ce",
		`{"drop":{"json":"/a"}}`:                         "0.drop: says nothing of the value",
		`{"drop":{"json":"a","eq":1}}`:                   "0.drop.json: JSON pointer",
		`{"drop":{"all":[]}}`:                            "0.drop.all: an empty list",
		`{"drop":{"any":[{"json":"/a","eq":1},{"not":{"json":"/a","lt":true}}]}}`:           "0.drop.any.1.not.lt: true and false have no order",
		`{"drop":{"json":"/a","eq":[1]}}`:                                                   "0.drop.eq: wants text, a number, true or false",
		`{"drop":{"json":"/a","in":[1,null]}}`:                                              "0.drop.in: value 1 wants text",
		`{"drop":{"json":"/a","in":[]}}`:                                                    "0.drop.in: an empty list",
		`{"drop":{"json":"/a","matches":"("}}`:                                              "0.drop.matches: no regular expression (RE2): missing closing )",
		`{"drop":{"json":"/a","matches":"(ab){600}"}}`:                                      "0.drop.matches: the regular expression repeats too much",
		`{"drop":{"json":"/a","matches":"` + strings.Repeat("a", 1001) + `"}}`:              "the limit is 1000",
		`{"drop":{"json":"/a","in":[` + strings.Repeat("1,", mostListed) + `1]}}`:           "0.drop.in: 1001 values",
		`{"drop":{"any":[` + many + `]}}`:                                                   "more than 256 conditions",
		`{"drop":{"any":[` + pointers[1:] + `]}}`:                                           "more than 16 JSON pointers",
		`{"drop":` + deep + `}`:                                                             "nested more than 8 deep",
		`{"drop":{"json":"/a","eq":1},"reason":"no"}`:                                       "0.reason: only of what is rejected",
		`{"reject":{"json":"/a","eq":1},"reason":"a\nb"}`:                                   "0.reason: must be one line",
		`{"name":"A b","drop":{"json":"/a","eq":1}}`:                                        "0.name: \"A b\" is no name",
		`{"name":"2","drop":{"json":"/a","eq":1}},{"drop":{"json":"/a","eq":1}}`:            "1.name: two filters have this name",
		strings.Repeat(`{"drop":{"json":"/a","eq":1}},`, 64) + `{"drop":{"ce":"a","eq":1}}`: "at most 64 filters",
	} {
		var all []Rule
		if err := json.Unmarshal([]byte("["+rules+"]"), &all); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFilter(all, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", rules, err)
		}
	}
	if f, err := NewFilter(nil, nil); f != nil || err != nil || f.Tallies() != nil {
		t.Errorf("%v %v", f, err)
	}
}

// Pointers that are watched already keep their place, and nothing is watched twice.
func TestFiltersShareTheScannersPlaces(t *testing.T) {
	key, _ := jsonscan.ParsePointer("/user")
	rule := func(p string) Rule { return Rule{Drop: &Condition{JSON: p, Eq: "x"}} }
	f, err := NewFilter([]Rule{rule("/level"), rule("/user"), rule("/level")}, []jsonscan.Pointer{key})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range f.Watch() {
		names = append(names, p.String())
	}
	if got := strings.Join(names, ","); got != "/user,,/level" {
		t.Errorf("%s", got)
	}
}

// Nothing is allocated for an event.
func TestFiltersAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector sync.Pool forgets at random")
	}
	f := filterOf(t, `[{"drop":{"any":[{"json":"/a","in":["x","y"]},{"json":"/a","matches":"^z+$"},{"json":"/b","gt":12.5},{"header":"h","eq":5},{"json":"/c","contains":"q"}]}}]`)
	line := []byte(`{"a":"w\n","b":1e1,"c":"long \"text\" with escapes"}`)
	s := jsonscan.New(64, f.Watch())
	s.Check(line)
	b := &event.Batch{Events: []event.Event{{Data: line}}, Headers: []event.Attr{{Name: []byte("h"), Value: []byte("6.5")}}}
	if n := testing.AllocsPerRun(100, func() { f.Sift(b, 0, s.Fields[:]) }); n != 0 || b.Events[0].Verdict != event.Keep {
		t.Errorf("%v allocations, %v", n, b.Events[0].Verdict)
	}
}

// BenchmarkFilter is what filters add to the syntax check of an access log line.
func BenchmarkFilter(b *testing.B) {
	line := []byte(`{"time":"2015-05-17T10:05:43.000Z","remote_ip":"83.149.9.216","remote_user":"-","request":"GET /presentations/logstash-monitorama-2013/images/kibana-dashboard3.png HTTP/1.1",` +
		`"response":200,"bytes":171717,"referrer":"http://semicomplete.com/presentations/logstash-monitorama-2013/","agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"}`)
	for _, c := range []struct{ name, rules string }{
		{"none", ""},
		{"response ge 500", `[{"drop":{"json":"/response","ge":500}}]`},
		{"text eq", `[{"drop":{"json":"/remote_user","eq":"probe"}}]`},
		{"five conditions", `[{"drop":{"any":[{"json":"/response","ge":500},{"json":"/remote_ip","in":["10.0.0.1","10.0.0.2"]},{"json":"/agent","contains":"Googlebot"},{"json":"/request","prefix":"GET /health"}]}},{"keep":{"json":"/bytes","exists":true}}]`},
		{"matches", `[{"drop":{"json":"/request","matches":"^GET /(css|js|health)"}}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var f *Filter
			var watch []jsonscan.Pointer
			if c.rules != "" {
				f = filterOf(b, c.rules)
				watch = f.Watch()
			}
			s := jsonscan.New(64, watch)
			batch := &event.Batch{Events: []event.Event{{Data: line}}}
			b.ReportAllocs()
			for b.Loop() {
				s.Check(line)
				if f != nil {
					f.Sift(batch, 0, s.Fields[:])
				}
			}
			if batch.Events[0].Verdict != event.Keep {
				b.Fatal("dropped")
			}
		})
	}
}
