// Package failpoint stops, fails or slows the process at named points of its way, in a build with the tag failpoints; in
// every other build its calls are empty and gone from the code.
//
// The variable FAILPOINTS says what happens where: "spool.synced=kill@3" kills the process, as kill -9 does, when it passes
// that point for the third time. Several are separated by commas.
//
//	POINT=kill[@N]         at the Nth pass; the first when it is not said
//	POINT=stop[@N]         that pass sends the process SIGTERM, and goes on
//	POINT=halt[@N]         that pass sends it SIGTERM over and over, and goes on no more: the second one is to end it
//	POINT=error[@N]        Err returns an error at the Nth pass; Pass takes no notice
//	POINT=delay:1s[@N]     that pass takes so long
//	POINT=ACTION@N+        at the Nth pass and all that follow
package failpoint

// Point is a place in the code.
type Point string

// The points, in the order in which a batch comes by them.
const (
	Accepted    Point = "accepted"      // the header is fine, nothing of the body was read
	Decoded     Point = "decoded"       // the events are known
	Transformed Point = "transformed"   // ids, plugins and keys are done
	Enqueued    Point = "enqueued"      // the events are in the lanes
	SpoolWrite  Point = "spool.write"   // before records are written
	SpoolSync   Point = "spool.sync"    // they are written and not synced
	SpoolSynced Point = "spool.synced"  // they are synced, nobody knows
	Answer      Point = "answer"        // before the answer is written
	Publish     Point = "publish"       // before a run goes to the backend
	Published   Point = "published"     // the backend has confirmed it, nothing knows
	Confirmed   Point = "confirmed"     // who waits knows, the spool does not
	Cursor      Point = "cursor"        // the cursor is written
	Segment     Point = "segment"       // a new segment is made, empty
	Removed     Point = "removed"       // a segment is deleted, and still counted
	Stored      Point = "document"      // a definition or table is in the control store, not in its copy
	Copied      Point = "document.copy" // it is in both

	FenceBegun     Point = "fence.begun"     // a table that begins a change is stored, not in force
	FenceParking   Point = "fence.parking"   // it is in force: events are parked
	FenceSealed    Point = "fence.sealed"    // a lane that is left is confirmed and its marker stored; nobody knows
	FenceCommit    Point = "fence.commit"    // all lanes are sealed, the table that ends the change is not stored
	FenceCommitted Point = "fence.committed" // it is stored; lanes know nothing of what they follow
	FenceFollowed  Point = "fence.followed"  // they do; it is not in force
)

// Points returns all of them.
func Points() []Point {
	return []Point{Accepted, Decoded, Transformed, Enqueued, SpoolWrite, SpoolSync, SpoolSynced, Answer,
		Publish, Published, Confirmed, Cursor, Segment, Removed, Stored, Copied,
		FenceBegun, FenceParking, FenceSealed, FenceCommit, FenceCommitted, FenceFollowed}
}
