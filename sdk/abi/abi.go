// Package abi is the border between Headgate and a WebAssembly plugin, version 1: names, layouts and numbers.
//
// All integers are little endian, pointers are 32-bit offsets into the guest's one memory. The host asks the
// guest for memory once (ExportAlloc), copies a batch of events in, and calls ExportProcess with a pointer to a
// control block. The guest writes one result for each event. It stores the index of the event it is about to
// look at in the control block (CtlDone), so that after a trap the host knows which event was to blame.
package abi

// ImportModule is the module name of the host's own functions; besides them a guest may import WASIModule.
const (
	ImportModule = "hg"
	WASIModule   = "wasi_snapshot_preview1"

	ImportLog     = "log"     // (level i32, ptr i32, len i32): one line for the gateway's log, rate limited
	ImportCounter = "counter" // (id i32, delta i64): adds to one of MaxCounters counters
)

// Exports of a guest. Memory, Version, Alloc and Process are required; Start is refused.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize" // (): called once, before everything else
	ExportStart      = "_start"
	ExportVersion    = "hg_abi_v1"  // () -> i32: Capabilities; its name is the version of the ABI
	ExportAlloc      = "hg_alloc"   // (size i32, align i32) -> ptr i32: at set-up, and when a batch needs more room; 0: none left
	ExportFree       = "hg_free"    // (ptr i32, size i32): optional, gives a region of ExportAlloc back
	ExportInit       = "hg_init"    // (ptr i32, len i32) -> i32: optional, the step's configuration; not 0: refused
	ExportProcess    = "hg_process" // (control i32) -> i32: one call a batch; not 0: the whole batch failed
)

// TestSection is the name of the custom section in which a module brings tests of its own; see docs/abi.md.
const TestSection = "hg.tests"

// Capability bits, what ExportVersion returns.
const (
	SetsKeys      = 1 << 0
	Drops         = 1 << 1
	Replaces      = 1 << 2
	KeepsState    = 1 << 3 // state lives in the instance and is lost with it: after a trap, on a swap
	Deterministic = 1 << 4

	KnownCapabilities = SetsKeys | Drops | Replaces | KeepsState | Deterministic
)

// The control block: ControlSize bytes, these offsets. All fields are u32 but CtlNow.
const (
	CtlSize      = 0  // ControlSize
	CtlCount     = 4  // n, the number of events
	CtlFirst     = 8  // index of the first event to process
	CtlDone      = 12 // written by the guest: i before it looks at event i, n at the end
	CtlData      = 16 // the events' bytes, followed by DataPadding zero bytes
	CtlDataLen   = 20
	CtlEvents    = 24 // n x EventSize
	CtlResults   = 28 // n x ResultSize
	CtlNow       = 32 // u64: arrival of the batch, unix nanoseconds
	CtlFlags     = 40 // FlagReplay, FlagDryRun
	CtlStream    = 44 // a number for the stream: FNV-1a, 32 bits, of its name
	CtlHeader    = 48 // request metadata: pairs of name and value, each a u16 length and its bytes
	CtlHeaderLen = 52
	CtlBudget    = 56 // most bytes that the replaced values of this call may have together

	ControlSize = 64
)

// An event descriptor: u32 offset from CtlData, u32 length.
const (
	EventOffset = 0
	EventLength = 4

	EventSize = 8
)

// A result. ResKey and ResValue are pointers into the guest's memory, valid until the next call; a ResKey of 0
// is no key, any other with ResKeyLen 0 is the empty key.
const (
	ResKey      = 0  // u32
	ResKeyLen   = 4  // u16
	ResVerdict  = 6  // u8
	ResCode     = 7  // u8, the guest's reason for VerdictReject
	ResValue    = 8  // u32, the event's new bytes, for VerdictReplace
	ResValueLen = 12 // u32

	ResultSize = 16
)

// Verdicts. The host fills results with VerdictUnset before each call.
const (
	VerdictKeep    = 0
	VerdictDrop    = 1
	VerdictReject  = 2
	VerdictReplace = 3
	VerdictUnset   = 0xFF
)

// Flags of a call.
const (
	FlagReplay = 1 << 0 // the events before were processed by another instance, which trapped
	FlagDryRun = 1 << 1 // nothing will be stored
)

// Levels of ImportLog.
const (
	LevelDebug = 0
	LevelInfo  = 1
	LevelWarn  = 2
	LevelError = 3
)

// Limits.
const (
	Alignment   = 16      // of each region that ExportAlloc returns
	DataPadding = 64      // readable zero bytes behind the data, so that guests may read whole vectors
	MaxEvents   = 256     // in one call
	MaxData     = 1 << 20 // bytes of events in one call; a single larger event comes alone
	MaxKey      = 1 << 10 // bytes of a key
	MaxCounters = 32
	MaxLogLine  = 1 << 10 // bytes; the rest of a line is cut off

	// OutputFactor and OutputExtra give CtlBudget: factor x CtlDataLen + extra.
	OutputFactor = 2
	OutputExtra  = 64 << 10
)
