package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/headgate-io/headgate/partitioner"
)

// A plot has the load of each partition over time as a picture of its own colours, the fullest partition as a line,
// table changes as marks, and the keys that were split. Written by hand: the plotting library gonum.org/v1/plot
// would add a quarter to the size of the binary.
const (
	plotWidth, plotHeight = 900.0, 300.0
	plotLeft, plotTop     = 60.0, 40.0
	changesTop            = plotTop + plotHeight + 20
	mostColumns           = 600 // of time
)

// WriteSVG draws what happened.
func (t *Tally) WriteSVG(w io.Writer) error {
	p := &plot{Writer: bufio.NewWriter(w), t: t, columns: columns(t.Seconds)}
	p.highest()
	hot := t.Hottest[:min(len(t.Hottest), 10)]
	height := changesTop + 60 + 14*float64(len(hot)) + 30
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" font-family="sans-serif" font-size="11">`+"\n", plotLeft+plotWidth+20, height)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	h := t.Result.Headgate
	p.text(plotLeft, 16, "load of each partition in relation to the mean, by second")
	p.text(plotLeft, 30, fmt.Sprintf("max/mean %.3f (hashing %.3f, two-choice %.3f); %d splits, %d grows, %d merges, %d moves",
		h.MaxOverMean, t.Result.Hashing.MaxOverMean, t.Result.TwoChoice.MaxOverMean, h.Splits, h.Grows, h.Merges, h.Moves))
	p.axes()
	p.loads()
	p.changes()
	y := changesTop + 60.0
	p.text(plotLeft, y, fmt.Sprintf("keys that are split at the end: %d", len(t.Hottest)))
	for _, k := range hot {
		y += 14
		p.text(plotLeft, y, fmt.Sprintf("%016x%016x over %d partitions", k.Hi, k.Lo, k.Partitions))
	}
	p.printf("</svg>\n")
	return p.Flush()
}

type plot struct {
	*bufio.Writer // keeps its first error until Flush
	t             *Tally
	columns       []column
	top           float64 // of the vertical axis: times the mean
}

// column is the load of each partition in relation to the mean in one or more seconds.
type column struct {
	from, to time.Duration
	loads    []float64
	worst    float64
	changes  [3]int // splits and grows, merges, moves and the rest
}

func (p *plot) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *plot) text(x, y float64, s string) {
	p.printf(`<text x="%.1f" y="%.1f">%s</text>`+"\n", x, y, s)
}

func columns(all []Second) []column {
	per := (len(all) + mostColumns - 1) / mostColumns
	var out []column
	for i := 0; i < len(all); i += per {
		part := all[i:min(len(all), i+per)]
		c := column{from: part[0].At - time.Second, to: part[len(part)-1].At, loads: make([]float64, len(part[len(part)-1].Partitions))}
		total := 0.0
		for _, s := range part {
			for n, l := range s.Partitions {
				c.loads[n] += l
				total += l
			}
			for _, change := range s.Changes {
				c.changes[row(change.Kind)]++
			}
		}
		for n := range c.loads {
			c.loads[n] *= float64(len(c.loads)) / max(total, 1)
		}
		c.worst = slices.Max(c.loads)
		out = append(out, c)
	}
	return out
}

func row(k partitioner.Kind) int {
	switch k {
	case partitioner.SplitKey, partitioner.GrowKey:
		return 0
	case partitioner.MergeKey:
		return 1
	}
	return 2
}

// highest sets the end of the axis: what nearly all of the columns have, so that a cold start does not flatten the rest.
func (p *plot) highest() {
	var worst []float64
	for _, c := range p.columns {
		worst = append(worst, c.worst)
	}
	slices.Sort(worst)
	p.top = 2
	if len(worst) > 0 {
		p.top = max(2, math.Ceil(worst[len(worst)*9/10]*1.2))
	}
}

func (p *plot) x(at time.Duration) float64 {
	return plotLeft + plotWidth*at.Seconds()/max(p.end().Seconds(), 1)
}

func (p *plot) y(load float64) float64 { return plotTop + plotHeight*(1-min(load, p.top)/p.top) }

func (p *plot) end() time.Duration {
	if len(p.columns) == 0 {
		return time.Second
	}
	return p.columns[len(p.columns)-1].to
}

func (p *plot) axes() {
	p.printf(`<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="#888"/>`+"\n", plotLeft, plotTop, plotWidth, plotHeight)
	for i := range 5 {
		share := float64(i) / 4
		p.text(plotLeft-40, p.y(share*p.top)+4, fmt.Sprintf("%.2f", share*p.top))
		p.text(plotLeft+share*plotWidth-8, plotTop+plotHeight+13, fmt.Sprintf("%.0f s", share*p.end().Seconds()))
	}
	p.printf(`<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#bbb" stroke-dasharray="4 3"/>`+"\n", plotLeft, plotLeft+plotWidth, p.y(1), p.y(1))
}

// loads draws a line for each partition and a thick one for the fullest.
func (p *plot) loads() {
	partitions := 0
	for _, c := range p.columns {
		partitions = max(partitions, len(c.loads))
	}
	for n := range partitions {
		p.line(fmt.Sprintf(`stroke="hsl(%d,60%%,55%%)" stroke-width="0.6"`, n*360/partitions), func(c column) (float64, bool) {
			if n >= len(c.loads) {
				return 0, false
			}
			return c.loads[n], true
		})
	}
	p.line(`stroke="black" stroke-width="1.5"`, func(c column) (float64, bool) { return c.worst, true })
}

func (p *plot) line(style string, value func(column) (float64, bool)) {
	p.printf(`<polyline fill="none" %s points="`, style)
	for _, c := range p.columns {
		if v, ok := value(c); ok {
			p.printf("%.1f,%.1f ", p.x((c.from+c.to)/2), p.y(v))
		}
	}
	p.printf("\"/>\n")
}

// changes draws a row of marks for each kind, darker where there were more.
func (p *plot) changes() {
	for i, name := range []string{"splits", "merges", "moves"} {
		y := changesTop + 12*float64(i)
		p.text(4, y+9, name)
		for _, c := range p.columns {
			if c.changes[i] > 0 {
				p.printf(`<rect x="%.1f" y="%.1f" width="%.2f" height="10" fill="%s" fill-opacity="%.2f"><title>%d</title></rect>`+"\n", p.x(c.from), y,
					max(1, p.x(c.to)-p.x(c.from)), [...]string{"#c00", "#080", "#06c"}[i], min(1, 0.3+float64(c.changes[i])/20), c.changes[i])
			}
		}
	}
}
