// Package meter reads WebAssembly modules before anything is compiled: it counts and limits what they declare, and
// rewrites them so that a guest pays for what it executes and can be stopped.
//
// A compiled guest can't be interrupted from outside. So the rewritten module counts down itself: see Rewrite.
package meter

// Version is that of the rewriting. It changes whenever Rewrite makes something else of a module, so that what was
// compiled before is not used any more.
const Version = 1

// The import that Rewrite adds: (i64) -> i64. Its parameter is the fuel that is left, below zero, or Deep; its result
// is the fuel to go on with.
const (
	YieldModule = "hg"
	YieldName   = "yield"
)

// Slice is how much fuel a guest gets at a time. At 0.01 to 0.1 ns for a unit it comes back to the host each 10 to
// 100 us: that is how long it may hold up Go's garbage collector, and how exact its deadline is.
const Slice = 1 << 20

// Deep is what the import is called with when calls are nested too deep; it must not return then.
const Deep = -1 << 63

// Depth is how many calls may be nested, each weighed by its locals: see weigh.
const Depth = 2_000

// TableCap is how many elements a table may grow to.
const TableCap = 100_000

// Costs in units of fuel; what is not named costs 1.
const (
	costSlow     = 8   // divisions and square roots, which take ten cycles and more
	costHost     = 100 // calls of the host
	costIndirect = 130 // calls through a table, with all of a function that is not metered itself
	costFree     = 128 // at most, of a function that is not metered itself: its callers pay
	bytesShift   = 4   // bulk operations pay a unit for 16 bytes
)
