//go:build failpoints

package failpoint

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	all, err := parse("accepted=kill@3,spool.sync=error@2+,publish=delay:20ms")
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	if a := all[Accepted]; !a.kill || a.from != 3 || a.on {
		t.Errorf("%+v", a)
	}
	if a := all[Publish]; a.delay != 20*time.Millisecond || a.from != 1 || a.on || a.kill || a.fails {
		t.Errorf("%+v", a)
	}
	more, err := parse("fence.sealed=stop@4,fence.commit=halt")
	if a, b := more[FenceSealed], more[FenceCommit]; err != nil || !a.stop || a.halt || a.from != 4 || !b.halt || b.stop {
		t.Errorf("%+v, %+v, %v", a, b, err)
	}
	for pass, want := range []bool{false, true, true} {
		if err := all[SpoolSync].pass(SpoolSync); (err != nil) != want {
			t.Errorf("pass %d: %v", pass+1, err)
		}
	}
	for _, bad := range []string{"accepted", "nowhere=kill", "accepted=end", "accepted=kill@0", "accepted=delay:x", "accepted=kill@"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
