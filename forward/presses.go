package forward

import "runtime"

// Presses are what seals frames. There are as many as may work at once, for all forwarders of a process: the memory
// that sealing needs is theirs and no more than that, however many lanes have something to seal.
type Presses struct{ idle chan *press }

// NewPresses returns n presses; for 0, one for each processor.
func NewPresses(n int) *Presses {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Presses{idle: make(chan *press, n)}
	for range n {
		p.idle <- new(press)
	}
	return p
}

// press is scratch memory; who takes it off the channel has it alone.
type press struct {
	dictionary  dictionary
	data, block []byte
}

// mostScratch is what a press keeps of a buffer: single events may be far larger than frames are.
const mostScratch = 2 << 20

func (p *Presses) giveBack(one *press) {
	if cap(one.data) > mostScratch {
		one.data = nil
	}
	if cap(one.block) > mostScratch {
		one.block = nil
	}
	p.idle <- one
}
