package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// tailer prints what one long answer brings.
type tailer struct {
	from    *remote
	options tailOptions
	out     io.Writer
	stderr  io.Writer

	lanes   map[string]uint64 // number of the last event by lane
	events  int               // printed
	missing int               // events that could not be shown
}

// run ends without error when enough events have come, nothing came for long enough, or ctx ends.
func (t *tailer) run(ctx context.Context) error {
	resp, err := t.from.send(ctx, t.options.call())
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer resp.Body.Close()
	if t.options.output == "frames" {
		err = t.copyFrames(resp.Body)
	} else {
		err = t.copyRows(resp.Body)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	if t.missing > 0 {
		return fmt.Errorf("%d events could not be shown", t.missing)
	}
	return nil
}

func (t *tailer) copyFrames(body io.Reader) error {
	n, err := io.Copy(t.out, body)
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if t.options.count == 0 {
		return t.ended()
	}
	return nil
}

// ended is why an answer ends that should go on.
func (t *tailer) ended() error {
	if t.options.wait > 0 { // the gateway says when nothing new comes
		return nil
	}
	return fmt.Errorf("the gateway at %s ended the answer; if it was restarted, run this again", t.from.base)
}

// tailRow is what tail needs of a line; lines are printed as they come with -o json.
type tailRow struct {
	Partition  int     `json:"partition"`
	Gateway    string  `json:"gateway"`
	Number     uint64  `json:"number"` // from 1; 0: the line is about the answer, not about an event
	Data       *string `json:"data"`
	DataBase64 []byte  `json:"data_base64"`
	Error      string  `json:"error"`
	Detail     string  `json:"detail"`
	Size       int64   `json:"size"`
}

func (t *tailer) copyRows(body io.Reader) (err error) {
	in, out := bufio.NewReaderSize(body, 64<<10), bufio.NewWriterSize(t.out, 64<<10)
	defer func() { err = errors.Join(err, out.Flush()) }()
	for t.options.count == 0 || t.events < t.options.count {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return t.ended()
		}
		if err != nil {
			return fmt.Errorf("the answer broke off after %d events: %w", t.events, err)
		}
		if err := t.print(out, line); err != nil {
			return err
		}
	}
	return nil
}

func (t *tailer) print(out io.Writer, line []byte) error {
	var r tailRow
	if err := json.Unmarshal(line, &r); err != nil {
		return t.from.foreign(err)
	}
	if r.Number == 0 {
		return fmt.Errorf("%s: %s", r.Error, r.Detail)
	}
	t.events++
	t.noteGap(&r)
	if t.options.output == "json" {
		_, err := out.Write(line)
		return err
	}
	data := r.DataBase64
	switch {
	case r.Error != "":
		t.missing++
		_, err := fmt.Fprintf(t.stderr, "headgate tail: partition %d, event %d: %s, %d bytes\n", r.Partition, r.Number, r.Error, r.Size)
		return err
	case r.Data != nil:
		data = []byte(*r.Data)
	}
	_, err := out.Write(append(data, '\n'))
	return err
}

// noteGap says when the numbers of a lane, which have no gaps, go on later than they should.
func (t *tailer) noteGap(r *tailRow) {
	if t.lanes == nil {
		t.lanes = map[string]uint64{}
	}
	lane := fmt.Sprint(r.Partition, " ", r.Gateway)
	last := t.lanes[lane]
	t.lanes[lane] = r.Number
	if last != 0 && r.Number > last+1 {
		fmt.Fprintf(t.stderr, "headgate tail: partition %d of gateway %s: events are missing between numbers %d and %d; they were refused by the backend, removed, or lost\n",
			r.Partition, r.Gateway, last, r.Number)
	}
}
