package partitioner

import "time"

// The budget of moves, a leaky bucket in the ledger: full it is spent, and in budgetPeriod it is whole again.
const (
	budgetLoad   = 0.02     // share of the traffic
	budgetSlots  = 1.0 / 50 // share of the slots
	budgetPeriod = 10.0     // seconds
	firstCredit  = 4.0      // times as much in the first round of moves of a table that never moved anything, if that ...
	firstTicks   = 20       // ... begins so early, and no longer than ...
	firstRound   = 10 * time.Second
)
