package forward

import (
	"testing"
	"testing/synctest"
	"time"
)

// handAlarm is an alarm that rings when the test has it ring.
type handAlarm struct {
	ring   func()
	set    []time.Duration
	closed int
}

func (a *handAlarm) Set(d time.Duration) { a.set = append(a.set, d) }

func (a *handAlarm) Close() { a.closed++ }

// A round that comes too early waits for the alarm, which is set once, and closed with the forwarder.
func TestAnAlarmBeginsARoundThatCameTooEarly(t *testing.T) {
	var a *handAlarm
	synctest.Test(t, func(t *testing.T) {
		const disk = 100 * time.Microsecond
		r := startRounds(t, config(1), mute(), disk)
		r.round.make = func(ring func()) Alarm {
			a = &handAlarm{ring: ring}
			return a
		}
		r.send(0)
		synctest.Wait() // its round is being written
		for range many {
			r.send(0)
		}
		<-time.After(2 * disk)
		synctest.Wait()
		if early := r.cfg.LingerWaiting/2 - disk; a == nil || len(a.set) != 1 || a.set[0] != early {
			t.Fatalf("the alarm is %+v, want one set to %s", a, early)
		}
		<-time.After(a.set[0])
		if n := len(r.took); n != 1 {
			t.Fatalf("%d requests are answered before the alarm rings, want one", n)
		}
		a.ring()
		r.all.Wait()
	})
	if a.closed != 1 {
		t.Errorf("the alarm is closed %d times", a.closed)
	}
}
