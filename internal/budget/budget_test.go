package budget

import (
	"sync"
	"testing"
)

func TestReserve(t *testing.T) {
	whole := New(100)
	a, b := whole.Share(60), whole.Share(60)
	for i, step := range []struct {
		of   *Budget
		n    int64
		want bool
	}{
		{a, 50, true},
		{a, 20, false}, // over its share
		{b, 50, true},
		{b, 10, false}, // over the whole
		{a, 0, true},
	} {
		if got := step.of.Reserve(step.n); got != step.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
	if a.Held() != 50 || b.Held() != 50 || whole.Held() != 100 {
		t.Errorf("held %d + %d of %d: a refused reservation left something behind", a.Held(), b.Held(), whole.Held())
	}
	a.Release(50)
	b.Release(50)
	if !whole.Reserve(1000) {
		t.Error("an empty budget refused a reservation over its limit: it would never fit")
	}
}

// What is more than a share may not use up the whole: others keep a quarter.
func TestAShareIsABound(t *testing.T) {
	whole := New(100)
	a, b := whole.Share(50), whole.Share(50)
	for i, step := range []struct {
		of   *Budget
		n    int64
		want bool
	}{
		{a, 1000, false},
		{a, 76, false},
		{a, 75, true}, // all that one may have
		{a, 1, false},
		{b, 25, true},
		{b, 1, false},
	} {
		if got := step.of.Reserve(step.n); got != step.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
	a.Release(75)
	if a.Reserve(60) {
		t.Error("60 bytes were taken, which leaves others less than their quarter")
	}
	if a.Most() != 75 || b.Held() != 25 || whole.Held() != 25 {
		t.Errorf("most %d, held %d of %d", a.Most(), b.Held(), whole.Held())
	}
	if a.Charge(80); a.Held() != 80 || whole.Held() != 105 {
		t.Errorf("held %d of %d after a charge", a.Held(), whole.Held())
	}
}

func TestReserveConcurrently(t *testing.T) {
	b := New(10).Share(8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if b.Reserve(3) {
					if held := b.Held(); held > 8+3*8 {
						t.Errorf("held %d", held)
					}
					b.Release(3)
				}
			}
		})
	}
	wg.Wait()
	if b.Held() != 0 {
		t.Errorf("held %d at the end", b.Held())
	}
}
