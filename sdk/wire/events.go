package wire

import (
	"encoding/binary"
	"math"
)

// This file: the columns with one entry per event, each there only when an event of the frame needs it.

func appendEventColumns(dst []byte, m *Meta) []byte {
	start := 0
	if len(m.IDs) > 0 {
		dst, start = openColumn(dst, colIDs)
		for _, id := range m.IDs {
			dst = appendID(dst, id)
		}
		dst = closeColumn(dst, start)
	}
	if len(m.Times) > 0 {
		dst, start = openColumn(dst, colTimes)
		dst = closeColumn(appendTimes(dst, m.Times), start)
	}
	if len(m.Attrs) > 0 {
		dst, start = openColumn(dst, colAttrs)
		dst = closeColumn(appendAttrs(dst, m.Attrs), start)
	}
	return dst
}

func appendID(dst, id []byte) []byte {
	if id == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(id))+1), id...)
}

func (m *Meta) parseIDs(r *reader) {
	for range m.EventRoute {
		var id []byte
		if n := r.uvarint(); n > 0 {
			id = r.bytes(n - 1)
		}
		if r.failed {
			return
		}
		m.IDs = append(m.IDs, id)
	}
}

// Forms of an event's time: that of its request; an absolute one, 8 bytes of nanoseconds; or the zigzag
// distance in units from the one before, plus timeDistance.
const (
	timeOfRequest = 0
	timeAbsolute  = 1
	timeDistance  = 2
)

// appendTimes writes distances in the largest common unit: clocks mostly tick in milliseconds or seconds.
func appendTimes(dst []byte, times []int64) []byte {
	unit := timeUnit(times)
	dst = binary.AppendUvarint(dst, uint64(unit))
	var prev int64
	for _, t := range times {
		if t == 0 {
			dst = append(dst, timeOfRequest)
			continue
		}
		t /= unit
		if d := zigzag(t - prev); d <= math.MaxUint64-timeDistance {
			dst = binary.AppendUvarint(dst, d+timeDistance)
		} else {
			dst = binary.LittleEndian.AppendUint64(append(dst, timeAbsolute), uint64(t))
		}
		prev = t
	}
	return dst
}

func timeUnit(times []int64) int64 {
	unit := int64(1e9)
	for _, t := range times {
		for t%unit != 0 {
			unit /= 1000
		}
	}
	return unit
}

func (m *Meta) parseTimes(r *reader) {
	unit := int64(r.atMost(1e9))
	if unit != 1 && unit != 1e3 && unit != 1e6 && unit != 1e9 {
		r.fail()
		return
	}
	var prev int64
	for range m.EventRoute {
		form := r.uvarint()
		switch form {
		case timeOfRequest:
			if r.failed {
				return
			}
			m.Times = append(m.Times, 0)
			continue
		case timeAbsolute:
			if p := r.bytes(8); p != nil {
				prev = int64(binary.LittleEndian.Uint64(p))
			}
		default:
			prev += unzigzag(form - timeDistance)
		}
		if r.failed || prev > math.MaxInt64/unit || prev < math.MinInt64/unit {
			r.fail()
			return
		}
		m.Times = append(m.Times, prev*unit)
	}
}

// appendAttrs compares each attribute with the one at its place in the last event that had so many:
// producers repeat names, and mostly types and sources.
func appendAttrs(dst []byte, attrs [][]Attr) []byte {
	var prev []Attr
	for _, list := range attrs {
		dst = binary.AppendUvarint(dst, uint64(len(list)))
		for i, a := range list {
			var before Attr
			if i < len(prev) {
				before = prev[i]
			}
			dst = appendText(dst, a.Name, before.Name)
			dst = appendText(dst, a.Value, before.Value)
		}
		if len(list) > 0 {
			prev = list
		}
	}
	return dst
}

func (m *Meta) parseAttrs(r *reader) {
	var prev []Attr
	for range m.EventRoute {
		n := int(r.atMost(uint64(len(r.b)) / 2)) // an attribute takes two bytes at least
		start := len(m.attrs)
		for i := range n {
			var before Attr
			if i < len(prev) {
				before = prev[i]
			}
			m.attrs = append(m.attrs, Attr{Name: r.text(before.Name), Value: r.text(before.Value)})
		}
		if r.failed {
			return
		}
		list := m.attrs[start:len(m.attrs):len(m.attrs)] // stays right when m.attrs moves on to a larger array
		if n > 0 {
			prev = list
		}
		m.Attrs = append(m.Attrs, list)
	}
}
