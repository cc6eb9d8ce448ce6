// Package spool is the durable log of one stream's sealed frames: they are in it, synced, from when they are sealed
// until the backend has confirmed them, and come out as they went in.
//
// Goroutines that hand over and take frames:
//
//	spool, read, recall         the spool; frames read back, or from the memory of who still has them
//	space                       what all spools may hold together
//
// The one goroutine that writes (Run):
//
//	gather, write               which frames are written, and one write and one sync of them
//	ahead                       space asked for before it is needed
//	cursor, numbers             how far each lane is confirmed, and which numbers may have been given
//	tail, tidy                  what stays although it is confirmed, and segments that go
//	present                     files that were removed while they are in use
//
// The files:
//
//	files, segment, record      a folder, a file, a frame in it
//	recover, scan, missing      the index at a start, and what should be there and is not
//	examine, quarantine         damage: found, and put aside
//	recent                      the frames of the last time, for their ids
package spool
