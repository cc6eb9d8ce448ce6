// Package partitioner decides which partition an event goes to: key -> hash -> slot -> partition. It does no I/O,
// starts no goroutine and reads no clock.
//
// From a key to a partition:
//
//	hash, murmur2, class         a key's place in the hash space
//	table, rendezvous            which partition has a slot
//	split                        keys that are spread over child slots
//	assign                       the events of a batch, by the table in force
//
// What changes a table:
//
//	change                       slots and children to other owners; change_split: keys split, grown and merged
//	crossing, fence              a change of what has an order, in two tables with a seal between
//	stored                       tables as they are kept
//	ledger, budget               what the planner has spent and must remember
//
// What should change:
//
//	meter, sketch, heavy, named  what was assigned, and which keys are heavy
//	planner, plan                the changes that are needed now: plan_keys, plan_fluid, plan_moves, plan_size,
//	                             plan_limits, plan_weights
//	guards                       why a change has to wait
package partitioner
