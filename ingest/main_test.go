package ingest

import (
	"os"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestMain has fasthttp start what keeps the time of its answers, once in a process and for ever: in the bubble of a test it would
// never end.
func TestMain(m *testing.M) {
	new(fasthttp.ResponseHeader).Header()
	os.Exit(m.Run())
}
