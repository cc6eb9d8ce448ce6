// Package forward takes partitions to their backend: per partition a lane that keeps order, seals what it holds
// into compressed frames, and sends runs of frames until the backend confirms them.
//
// The way of an event:
//
//	backend                     what forward asks of a backend
//	forwarder, lane             the lanes of a stream, and one of them
//	forward, grouping           from a request into the open frames
//	frame, draft, buffers       a frame while it is open
//	round, seal, presses        when frames are sealed, and by whom; alarm is what begins a round; dictionary, positions and headers are of what is sealed
//	spooling, numbers           into the spool; the numbers of frames
//	send, retry, trouble        to the backend, until it confirms
//	pieces, deadletter          a frame that is refused for good; patience is for a backend that refuses too much
//	ending, receipt, counts     what has come of it, for who waits and for the metrics
//
// And besides:
//
//	spill, readback, recall     frames that are in the spool alone, and those that are in memory alone
//	inherited, repair           what an earlier process left, and what a backend has lost
//	fence                       a lane that is left by a change of the routing table: its seal, and what the next lane follows
//	loads                       what the planner knows of a lane
package forward
