package problem

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// A05: no code without a status.
func TestA05EveryCodeIsInTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "event", "code.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes++
		if kind, ok := Of(event.Code(word)); !ok || kind.Status < 400 || title(kind.Status) == "" {
			t.Errorf("code %q has no status in the table", word)
		}
		return true
	})
	if codes != len(Codes()) {
		t.Errorf("%d codes are declared, the table has %d", codes, len(Codes()))
	}
}

func TestRender(t *testing.T) {
	for _, c := range []struct {
		problem   event.Problem
		status    int
		retryable bool
		stored    string
	}{
		{event.Problem{Code: event.MalformedJSON}, 400, false, ""},
		{event.Problem{Code: event.Overloaded}, 503, true, "no"},
		{event.Problem{Code: event.AckTimeout, Stored: "unknown"}, 503, true, "unknown"},
		{event.Problem{Code: event.AckTimeout, Stored: "durable"}, 503, false, "durable"},
		{event.Problem{Code: "no such code"}, 500, true, ""},
	} {
		status, retryable, doc := Render(&c.problem, "r1")
		var got Document
		if err := json.Unmarshal(doc, &got); err != nil {
			t.Fatal(err)
		}
		if status != c.status || retryable != c.retryable || got.Status != status || got.Stored != event.Stored(c.stored) || got.RequestID != "r1" {
			t.Errorf("%v: got %d, retryable %v, %s", c.problem.Code, status, retryable, doc)
		}
	}
}
