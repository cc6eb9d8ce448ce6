package ingest

import (
	"strings"
	"testing"
)

func TestHeadgateSessionIsReadExactly(t *testing.T) {
	for value, want := range map[string]numbering{"a/1": {[]byte("a"), 1}, "a/b/18": {[]byte("a/b"), 18}, strings.Repeat("x", 64) + "/9223372036854775808": {[]byte(strings.Repeat("x", 64)), 1 << 63}} {
		if got, no := numberingOf([]byte(value)); no != nil || string(got.session) != string(want.session) || got.first != want.first {
			t.Errorf("%q: %+v, %v", value, got, no)
		}
	}
	for _, bad := range []string{"", "/", "a", "a/", "/1", "a/0", "a/01", "a/+1", "a/-1", "a/9223372036854775809", "a/99999999999999999999", "a b/1", "ä/1", "a/1 ", strings.Repeat("x", 65) + "/1"} {
		if got, no := numberingOf([]byte(bad)); no == nil {
			t.Errorf("%q is taken: %+v", bad, got)
		}
	}
}
