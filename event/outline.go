package event

// Outline is what answers need of a batch whose bytes are given back before the outcome of its events is known: five
// bytes an event, and the errors.
type Outline struct {
	batch    Batch // without events and bytes
	offsets  []int32
	verdicts []Verdict
}

// Outline returns the outline of b, which shares nothing with it.
func (b *Batch) Outline() *Outline {
	o := &Outline{
		batch:   Batch{Stream: b.Stream, ID: b.ID, Ack: b.Ack, Strict: b.Strict, Arrived: b.Arrived, Errors: append([]Error(nil), b.Errors...)},
		offsets: make([]int32, len(b.Events)), verdicts: make([]Verdict, len(b.Events)),
	}
	for i := range b.Events {
		o.offsets[i], o.verdicts[i] = int32(b.Events[i].Offset), b.Events[i].Verdict
	}
	return o
}

// Batch returns a batch with the verdicts and errors that the one of the outline had, and no data. It is called once.
func (o *Outline) Batch() *Batch {
	b := &o.batch
	b.Events = make([]Event, len(o.verdicts))
	for i := range b.Events {
		b.Events[i].Offset, b.Events[i].Verdict = int(o.offsets[i]), o.verdicts[i]
	}
	return b
}
