package alarm

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// It calls once for each time that it was set, not before that time, and not for one that another took the place of.
func TestAnAlarmCalls(t *testing.T) {
	called := make(chan time.Time, 100)
	a := New(func() { called <- time.Now() })
	defer a.Close()
	for _, d := range []time.Duration{0, 1, 300 * time.Microsecond, 3 * time.Millisecond} {
		began := time.Now()
		a.Set(d)
		if took := (<-called).Sub(began); took < d {
			t.Errorf("called after %s, want %s", took, d)
		}
	}
	a.Set(time.Hour)
	a.Set(time.Millisecond)
	<-called
	if len(called) > 0 {
		t.Error("called twice")
	}
	if n := testing.AllocsPerRun(100, func() { a.Set(time.Hour) }); n > 0 {
		t.Errorf("%v allocations to set it", n)
	}
}

// What it was set to before it was closed does not come, which another alarm tells that was set for later.
func TestAClosedAlarmIsSilent(t *testing.T) {
	called := make(chan bool, 10)
	a := New(func() { called <- true })
	a.Set(5 * time.Millisecond)
	a.Close()
	before := len(called)
	rang := make(chan bool)
	b := New(func() { rang <- true })
	defer b.Close()
	b.Set(10 * time.Millisecond)
	<-rang
	if len(called) != before {
		t.Error("called")
	}
	a.Set(time.Hour)
	a.Close()
}
