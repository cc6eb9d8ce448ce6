package wire

// Meta is what a frame says about its events besides their bytes. Its byte slices are lent: by the caller for
// AppendMeta; after ParseMeta they are views into the block or into memory of the Meta, after ResolveKeys also
// into the raw events, and are valid until the Meta is used again. A Meta is reused with Reset.
type Meta struct {
	Gateway      string  // id of the gateway that sealed the frame
	Stream       string  // name of the stream
	Partition    uint32  // partition, and so the lane, of the frame
	First        uint64  // number of the frame's first event in its lane, from 1
	TableVersion uint64  // routing table by which the events were assigned
	Framing      Framing // of the events
	RawLen       uint64  // bytes of the events before compression
	DataLen      uint64  // bytes after it: a reader walks a run without a decompressor

	Routes     []Route     // one per distinct (key, slot, child)
	EventRoute []uint32    // one per event, index into Routes: its length is the number of events
	Epochs     []SlotEpoch // one per distinct slot, or child where there is one, in order of Slot
	Requests   []Request   // in order; empty, or the Counts add up to the number of events

	IDs   [][]byte // empty when no event has an id; else one per event, nil for none
	Times []int64  // empty, or one per event: unix nanoseconds, 0 = the request's
	Attrs [][]Attr // empty, or one per event

	After []Predecessor // what must be read before this frame

	attrs []Attr // what Attrs point into after ParseMeta
	texts []byte // unpacked traceparents
}

// None is the Slot or Child of an event that has none.
const None = -1

// Route is a key and the place it was routed to.
type Route struct {
	Key    []byte
	HasKey bool  // false: a null key; an empty key is a key
	Slot   int32 // None for a null key
	Child  int32 // child slot of a split key, else None

	// KeyAt is for AppendMeta, and ParseMeta leaves it 0: 1 + the offset of the key in the data of the event that
	// introduces the route (the first that names it, when routes are in the order of their first use); 0: not known.
	KeyAt uint32

	off, size uint32 // where the key lies in the event that introduces the route; size 0: not there
}

// SlotEpoch is the epoch in which the frame's events of a slot were routed.
type SlotEpoch struct {
	Slot  int32 // from 0
	Epoch uint32
}

// Request is a run of consecutive events that arrived together.
type Request struct {
	Count       uint32 // events of the request in this frame
	Time        int64  // arrival, unix nanoseconds
	ID          []byte // batch_id of the answer
	TraceParent []byte // W3C traceparent, empty for none
	TraceState  []byte // W3C tracestate, likewise
	ClientID    []byte // X-Request-Id as the client sent it, empty for none
	Chain       []byte // digest of the plugin chain, empty for none
	Source      []byte // the producer
	Caller      []byte // who was authenticated, of a request with ids; empty for nobody
}

// Predecessor names what has to be read before: a lane, up to the event of that number.
type Predecessor struct {
	Partition uint32
	Gateway   string
	Number    uint64
}

// Attr is a CloudEvents attribute of an event.
type Attr struct{ Name, Value []byte }

// Reset empties m and keeps its memory.
func (m *Meta) Reset() {
	clear(m.Routes)
	clear(m.Requests)
	clear(m.IDs)
	clear(m.Attrs)
	clear(m.After)
	clear(m.attrs)
	*m = Meta{
		Routes: m.Routes[:0], EventRoute: m.EventRoute[:0], Epochs: m.Epochs[:0], Requests: m.Requests[:0],
		IDs: m.IDs[:0], Times: m.Times[:0], Attrs: m.Attrs[:0], After: m.After[:0], attrs: m.attrs[:0], texts: m.texts[:0],
	}
}

// Epoch returns the epoch of a slot or child; ok is false when the frame has no event of it.
func (m *Meta) Epoch(slot int32) (epoch uint32, ok bool) {
	i, ok := findSlot(m.Epochs, slot)
	if !ok {
		return 0, false
	}
	return m.Epochs[i].Epoch, true
}

// findSlot is written out because it runs once a route.
func findSlot(epochs []SlotEpoch, slot int32) (int, bool) {
	from, to := 0, len(epochs)
	for from < to {
		if middle := (from + to) / 2; epochs[middle].Slot < slot {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, from < len(epochs) && epochs[from].Slot == slot
}
