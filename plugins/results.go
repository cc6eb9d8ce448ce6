package plugins

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/abi"
)

// result is what a guest wrote for one event, not checked yet.
type result struct {
	key, keyLen     uint32
	verdict, code   uint8
	value, valueLen uint32
}

func readResult(p []byte) result {
	return result{
		key: u32(p, abi.ResKey), keyLen: uint32(binary.LittleEndian.Uint16(p[abi.ResKeyLen:])),
		verdict: p[abi.ResVerdict], code: p[abi.ResCode],
		value: u32(p, abi.ResValue), valueLen: u32(p, abi.ResValueLen),
	}
}

// harvest takes the results of one call over into the batch.
type harvest struct {
	step   *step
	batch  *event.Batch
	in     *instance
	memory []byte // all of the guest's
	budget int    // bytes that replaced values may still have
	tally
}

// apply takes over the results of the first n events of the call. Each stands for itself: one that is wrong goes
// by the policy, alone.
func (s *step) apply(b *event.Batch, in *instance, n int) {
	h := harvest{step: s, batch: b, in: in, memory: in.memory(), budget: in.budget()}
	results := in.view(in.results.ptr, n*abi.ResultSize)
	for i := range n {
		h.take(i, readResult(results[i*abi.ResultSize:]))
	}
	s.bill.count(h.tally)
}

func (h *harvest) take(i int, r result) {
	at := h.in.index[i]
	switch r.verdict {
	case abi.VerdictDrop:
		h.batch.Events[at].Verdict = event.Filtered
		h.dropped++
	case abi.VerdictReject:
		h.batch.Reject(int(at), event.PluginRejected, h.step.reason(h.batch, r.code))
		h.rejected++
	case abi.VerdictKeep, abi.VerdictReplace:
		if !h.keep(i, r) {
			h.fail(at, badResult)
		}
	case abi.VerdictUnset:
		h.fail(at, notWritten)
	default:
		h.fail(at, badResult)
	}
}

func (h *harvest) fail(at int32, kind failure) {
	h.step.fail(h.batch, at, kind)
	h.failed++
}

// keep sets key and new bytes of the i-th event of the call. It changes nothing when either is wrong.
func (h *harvest) keep(i int, r result) bool {
	e := &h.batch.Events[h.in.index[i]]
	key, ok := span(h.memory, r.key, r.keyLen)
	if !ok || len(key) > abi.MaxKey {
		return false
	}
	if r.key != 0 {
		key = h.own(i, e.Data, r.key, key)
	}
	if r.verdict == abi.VerdictReplace {
		if !h.replace(int(h.in.index[i]), r) {
			return false
		}
		h.replaced++
	} else {
		h.kept++
	}
	if r.key != 0 {
		e.Key, e.HasKey = key, true
	}
	return true
}

// own returns bytes equal to key that live as long as the batch: those of the event's own data when the guest
// pointed there and left them as they were, else a copy.
func (h *harvest) own(i int, data []byte, ptr uint32, key []byte) []byte {
	at := int64(ptr) - int64(h.in.data.ptr) - int64(h.in.offset[i])
	if at >= 0 && at+int64(len(key)) <= int64(len(data)) {
		if same := data[at : at+int64(len(key))]; bytes.Equal(same, key) {
			return same
		}
	}
	return h.batch.Copy(key)
}

// replace gives the event its new bytes, when they would have been accepted on arrival.
func (h *harvest) replace(at int, r result) bool {
	value, ok := span(h.memory, r.value, r.valueLen)
	rules := &h.step.rules
	if !ok || len(value) > h.budget || len(value) > rules.MaxEvent {
		return false
	}
	fields := [event.MaxFields]event.Span{}
	switch h.batch.Syntax {
	case event.JSON:
		if h.in.scanner.Check(value).Code != "" {
			return false
		}
		fields = h.in.scanner.EventFields()
	case event.Text:
		if !rules.PassUTF8 && !utf8.Valid(value) {
			return false
		}
	}
	h.budget -= len(value)
	h.batch.Replace(at, h.batch.Copy(value))
	h.batch.Events[at].Fields = fields
	return true
}

// span returns n bytes of memory at ptr; ok is false when they are not all there.
func span(memory []byte, ptr, n uint32) (p []byte, ok bool) {
	end := uint64(ptr) + uint64(n)
	if end > uint64(len(memory)) {
		return nil, false
	}
	return memory[ptr:end:end], true
}
