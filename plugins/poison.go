package plugins

import (
	"sync"
	"sync/atomic"
	"time"
)

// poison limits what callers may cost by events on which a version of a plugin traps. It is safe for concurrent use.
// Its zero value limits nothing.
type poison struct {
	limit poisonLimit
	some  atomic.Bool // there are accounts

	mu       sync.Mutex
	accounts map[uint64]account // guarded by mu: by caller, see event.Batch.Owner
	replaced account            // guarded by mu: instances made in place of others, for whoever came first
	reserved account            // guarded by mu: those made for callers who have had few
}

// poisonLimit is what may come at once, and what of it is forgiven in a second.
type poisonLimit struct {
	traps, replacements float64       // of a caller, of the version; a second
	time                time.Duration // of a caller, in calls that trapped; a quarter of a second is forgiven in a second
}

// account is what was used and not yet forgiven, at a time.
type account struct {
	at       time.Time
	count    float64       // traps; of the version's accounts: replacements
	replaced float64       // instances made for this caller
	time     time.Duration // in calls that trapped
}

const (
	trapsPerSecond        = 10
	replacementsPerSecond = 8
	reservedForOne        = 2   // replacements a second: who has had fewer gets one of the reserve
	deadlinesAtOnce       = 2.5 // so that one endless loop, and another one, are paid for
	timeForgiven          = 250 * time.Millisecond
	manyAccounts          = 1_000 // so many are looked through for ones that are even
)

// later is the account at a later time, of which perSecond was forgiven each second.
func (a account) later(now time.Time, perSecond float64) account {
	past := max(now.Sub(a.at), 0)
	return account{
		at:       now,
		count:    max(0, a.count-perSecond*past.Seconds()),
		replaced: max(0, a.replaced-reservedForOne*past.Seconds()),
		time:     max(0, a.time-time.Duration(past.Seconds()*float64(timeForgiven))),
	}
}

// trapped notes that a caller's event cost a trap, after so long a call.
func (p *poison) trapped(caller uint64, took time.Duration) {
	if p.limit.traps == 0 {
		return
	}
	p.change(caller, func(a *account) {
		a.count++
		a.time += took
	})
}

// charge notes more time that a trap of a caller's cost.
func (p *poison) charge(caller uint64, took time.Duration) {
	if p.limit.traps != 0 && took > 0 {
		p.change(caller, func(a *account) { a.time += took })
	}
}

// change changes a caller's account.
func (p *poison) change(caller uint64, by func(a *account)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changeLocked(caller, by)
}

// changeLocked is change for who holds mu.
func (p *poison) changeLocked(caller uint64, by func(a *account)) {
	now := time.Now()
	if p.accounts == nil {
		p.accounts = map[uint64]account{}
	}
	if len(p.accounts) >= manyAccounts {
		p.forget(now)
	}
	a := p.accounts[caller].later(now, p.limit.traps)
	by(&a)
	p.accounts[caller] = a
	p.some.Store(true)
}

// forget drops the accounts that are even. The caller holds mu.
func (p *poison) forget(now time.Time) {
	for caller, a := range p.accounts {
		if a = a.later(now, p.limit.traps); a.count == 0 && a.time == 0 && a.replaced == 0 {
			delete(p.accounts, caller)
		}
	}
}

// over reports whether a caller has cost too much to be served now.
func (p *poison) over(caller uint64) bool {
	if !p.some.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.accounts[caller]
	if !ok {
		return false
	}
	a = a.later(time.Now(), p.limit.traps)
	return a.count > p.limit.traps || a.time > p.limit.time
}

// replace reports whether one more instance may be made now, for a caller, in place of one that trapped, and counts it. When
// others have used up what the version may, a caller who has had few still gets one, so that who sends poison does not take
// from those who send an event of it now and then: there are as many once more for these, and then there are none.
func (p *poison) replace(caller uint64) bool {
	if p.limit.replacements == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	from := &p.replaced
	if !p.has(from, now) {
		from = &p.reserved
		if p.accounts[caller].later(now, 0).replaced+1 > reservedForOne || !p.has(from, now) {
			return false
		}
	}
	from.count++
	p.changeLocked(caller, func(a *account) { a.replaced++ })
	return true
}

// has brings an account of the version up to date and reports whether one more replacement is in it. The caller holds mu.
func (p *poison) has(a *account, now time.Time) bool {
	*a = a.later(now, p.limit.replacements)
	return a.count+1 <= p.limit.replacements
}
