package plugin

import "runtime"

//go:wasmimport hg log
func hostLog(level uint32, line string)

//go:wasmimport hg counter
func hostCounter(id uint32, delta int64)

//go:wasmexport hg_abi_v1
func exportVersion() uint32 { return uint32(g.can) }

//go:wasmexport hg_alloc
func exportAlloc(size, align uint32) uint32 { return g.alloc(size, align) }

//go:wasmexport hg_free
func exportFree(ptr, _ uint32) { g.release(ptr) }

//go:wasmexport hg_init
func exportInit(ptr, n uint32) int32 { return g.start(ptr, n) }

// exportProcess gives the collector its turn once a batch: nothing else runs after an export has returned.
//
//go:wasmexport hg_process
func exportProcess(control uint32) int32 {
	status := g.process(control)
	runtime.Gosched()
	return status
}
