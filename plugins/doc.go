// Package plugins runs users' WebAssembly modules over batches: it admits and compiles them, keeps instances
// ready, and hands events over and results back under checks.
//
// A guest can't reach files, sockets or the environment, and nothing it returns is believed unchecked. Compiled code
// can't be interrupted, so what is compiled is a module that meters itself: see the package meter.
//
// From an upload to a call:
//
//	host, admission, report     what may be uploaded, and why something may not; imports and wasi are what a guest may call,
//	                            config what it may be told
//	trust                       signatures
//	tests, selftest             the tests that a module brings with it, run before it is admitted
//	cache, child, turns         compiled forms, and the process that makes them
//	module, references          a compiled version, closed by its last user
//	chain, step                 the plugins of a stream, and the batch that goes through them; policy is what becomes of an event
//	                            on which one failed
//	stages, beside, compare     a version that is tried: which batches it gets, and how its results differ
//	pool, making, queue         instances: how many, how they are made, who gets the next one; unmade is when there is none
//	instance, guest, memory     a running guest
//	call, headers, results      one call: events in, results out and checked
//	leash, seats, seated        how long a call may take, and how many guests compute for long at a time
//	poison, health              what callers may cost by events that trap, and when a version is suspended
//	bill, metrics, journal      what a version has used, done and logged
//	try                         a plugin over samples, without a stream
package plugins
