package window

// crowd counts what runs, limit at most, so that what stands still in one place leaves room for the others: a stream may
// have as many as there is room left then, and of these one owner as many as are left to the stream. One stream alone gets
// to a half, each of two to a third; one owner alone in one stream to a third of all.
type crowd struct {
	limit, all int
	streams    map[string]int
	cells      map[cell]int
}

// cell is where something runs, and for whom.
type cell struct {
	stream string
	owner  Owner
}

func newCrowd(limit int) crowd {
	return crowd{limit: limit, streams: map[string]int{}, cells: map[cell]int{}}
}

// enter counts one more; false: it may not run.
func (c *crowd) enter(at cell) bool {
	left := c.limit - c.all - c.streams[at.stream]
	if left-c.cells[at] <= 0 {
		return false
	}
	c.all++
	c.streams[at.stream]++
	c.cells[at]++
	return true
}

// leave ends what entered.
func (c *crowd) leave(at cell) {
	c.all--
	if c.streams[at.stream]--; c.streams[at.stream] == 0 {
		delete(c.streams, at.stream)
	}
	if c.cells[at]--; c.cells[at] == 0 {
		delete(c.cells, at)
	}
}
