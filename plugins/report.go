package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/headgate-io/headgate/sdk/abi"
)

// Codes of checks that failed.
const (
	codeSize      = "E_SIZE"      // the module is larger than allowed
	codeMalformed = "E_MALFORMED" // not a module, or not a valid one
	codeLimit     = "E_LIMIT"     // asks for more than a guest may have
	codeImport    = "E_IMPORT"    // imports what no guest may have
	codeExport    = "E_EXPORT"    // lacks an export, or has one that it may not
	codeCompile   = "E_COMPILE"   // the compiler gave up

	codeCompileTime   = "E_COMPILE_TIME" // compiling it takes too long
	codeCompileMemory = "E_COMPILE_MEM"  // compiling it takes too much memory

	codeInit = "E_INIT" // the module could not be started

	codeSelfTest = "E_SELFTEST" // the tests that it brings came out differently

	codeSignature = "E_SIGNATURE" // it is not signed, or not so that it may be trusted
)

// Report is what admission found out about a module. Its JSON is part of the admin API's answer to an upload.
type Report struct {
	Digest    string   `json:"digest"` // "sha256:<hex>" of the module
	Size      int      `json:"size"`   // bytes
	ABI       string   `json:"abi"`    // name and version of the border it was written for; empty when unknown
	Kind      string   `json:"kind"`   // what it may do to events: extractor, filter, transformer, joined by +
	Languages []string `json:"languages"`
	Checks    []Check  `json:"checks"` // in the order made; a check that failed in several ways is there as often
}

// Check is the outcome of one check of a module.
type Check struct {
	Check  string `json:"check"` // signature, size, limits, format, imports, exports, memory, compile, init, selftest
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`   // E_SIZE and so on when it failed
	Detail string `json:"detail,omitempty"` // names what is wrong, and what would be right; of a check that passed, what there is to know
}

func reportOn(wasm []byte) *Report {
	return &Report{Digest: Digest(wasm), Size: len(wasm), Languages: []string{}}
}

// OK reports whether the module may be used: every check was made and none failed.
func (r *Report) OK() bool {
	return r.passed() && r.ABI != ""
}

// Failed returns the details of the failed checks, each with its code in front, on one line.
func (r *Report) Failed() string {
	var all []string
	for _, c := range r.Checks {
		if !c.OK {
			all = append(all, c.Code+" "+c.Detail)
		}
	}
	return strings.Join(all, "; ")
}

func (r *Report) passed() bool {
	for _, c := range r.Checks {
		if !c.OK {
			return false
		}
	}
	return true
}

// note adds a check with each of its faults, or as passed when there are none, and reports whether it passed.
func (r *Report) note(check, code string, faults ...string) bool {
	if len(faults) == 0 {
		r.Checks = append(r.Checks, Check{Check: check, OK: true})
	}
	for _, detail := range faults {
		r.Checks = append(r.Checks, Check{Check: check, Code: code, Detail: detail})
	}
	return len(faults) == 0
}

// Refused is the report on a module that is refused before it is looked at, because it fails a check of the caller's own: it
// asks for more than there is.
func Refused(wasm []byte, check, detail string) *Report {
	r := reportOn(wasm)
	r.note(check, codeLimit, detail)
	return r
}

// noteSignature adds the check of a signature where there is one to make, and reports whether it passed.
func (r *Report) noteSignature(t *Trust, wasm, signature []byte) bool {
	said, err := t.Verify(wasm, signature)
	if err != nil {
		return r.note("signature", codeSignature, err.Error())
	}
	if said != "" {
		r.Checks = append(r.Checks, Check{Check: "signature", OK: true, Detail: said})
	}
	return true
}

// Digest is the name of a version: "sha256:" and the lower-case hexadecimal SHA-256 of the module.
func Digest(wasm []byte) string {
	sum := sha256.Sum256(wasm)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func kindOf(capabilities uint32) string {
	var kinds []string
	if capabilities&abi.SetsKeys != 0 {
		kinds = append(kinds, "extractor")
	}
	if capabilities&abi.Drops != 0 {
		kinds = append(kinds, "filter")
	}
	if capabilities&abi.Replaces != 0 {
		kinds = append(kinds, "transformer")
	}
	if len(kinds) == 0 {
		return "observer"
	}
	return strings.Join(kinds, "+")
}
