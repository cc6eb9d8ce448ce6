package partitioner

// The budget of moves, a leaky bucket in the ledger: full it is spent, and in budgetPeriod it is whole again.
const (
	budgetLoad   = 0.02     // share of the traffic
	budgetSlots  = 1.0 / 50 // share of the slots
	budgetPeriod = 10.0     // seconds
)
