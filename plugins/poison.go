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
	accounts map[string]account // guarded by mu: by caller
	replaced account            // guarded by mu: instances made in place of others
}

// poisonLimit is what may come at once, and what of it is forgiven in a second.
type poisonLimit struct {
	traps, replacements float64       // of a caller, of the version; a second
	time                time.Duration // of a caller, in calls that trapped; a quarter of a second is forgiven in a second
}

// account is what was used and not yet forgiven, at a time.
type account struct {
	at    time.Time
	count float64
	time  time.Duration
}

const (
	trapsPerSecond        = 10
	replacementsPerSecond = 8
	deadlinesAtOnce       = 2.5 // so that one endless loop, and another one, are paid for
	timeForgiven          = 250 * time.Millisecond
	manyAccounts          = 1_000 // so many are looked through for ones that are even
)

// later is the account at a later time, of which perSecond was forgiven each second.
func (a account) later(now time.Time, perSecond float64) account {
	past := max(now.Sub(a.at), 0)
	return account{
		at:    now,
		count: max(0, a.count-perSecond*past.Seconds()),
		time:  max(0, a.time-time.Duration(past.Seconds()*float64(timeForgiven))),
	}
}

// trapped notes that a caller's event cost a trap, after so long a call.
func (p *poison) trapped(caller []byte, took time.Duration) {
	if p.limit.traps == 0 {
		return
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accounts == nil {
		p.accounts = map[string]account{}
	}
	if len(p.accounts) >= manyAccounts {
		p.forget(now)
	}
	a := p.accounts[string(caller)].later(now, p.limit.traps)
	a.count++
	a.time += took
	p.accounts[string(caller)] = a
	p.some.Store(true)
}

// forget drops the accounts that are even. The caller holds mu.
func (p *poison) forget(now time.Time) {
	for caller, a := range p.accounts {
		if a = a.later(now, p.limit.traps); a.count == 0 && a.time == 0 {
			delete(p.accounts, caller)
		}
	}
}

// over reports whether a caller has cost too much to be served now.
func (p *poison) over(caller []byte) bool {
	if !p.some.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.accounts[string(caller)]
	if !ok {
		return false
	}
	a = a.later(time.Now(), p.limit.traps)
	return a.count > p.limit.traps || a.time > p.limit.time
}

// replace reports whether one more instance may be made now in place of one that trapped, and counts it.
func (p *poison) replace() bool {
	if p.limit.replacements == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.replaced.later(time.Now(), p.limit.replacements)
	if a.count+1 > p.limit.replacements {
		return false
	}
	a.count++
	p.replaced = a
	return true
}
