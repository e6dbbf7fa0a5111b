package cli

import (
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	progressAfter = 2 * time.Second        // what is over by then shows none
	progressEvery = 200 * time.Millisecond // it is written anew
	partsAtOnce   = 500                    // letters or events that are changed between two looks
)

// A progress tells on the last line of a terminal how far a command is: how much is done, its
// share of the whole, the rate, and the time left. Elsewhere it tells nothing, for there a line
// cannot be written anew.
type progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	last     time.Time
	shown    bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), now: time.Now, began: time.Now()}
}

func (s *session) progress() *progress { return newProgress(s.stderr) }

// of tells that so many of all are done.
func (p *progress) of(what string, done, all int64) {
	p.at(fmt.Sprintf("%s %d of %d", what, done, all), done, float64(done)/float64(max(all, 1)))
}

// looked tells how many were looked at, of a number that is not known.
func (p *progress) looked(what string) func(int) {
	return func(n int) { p.at(fmt.Sprintf("looked at %d %s", n, what), int64(n), 0) }
}

// at tells what is done, the number of it, and its share of the whole, 0 where that is not known.
func (p *progress) at(text string, done int64, share float64) {
	now := p.now()
	if !p.terminal || now.Sub(p.began) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(raw(p.w), "\r\x1b[K%s%s", shown(text), pace(now.Sub(p.began), done, share))
}

// pace is the share of the whole that is done, the rate, and the time that is left.
func pace(took time.Duration, done int64, share float64) (text string) {
	if share > 0 {
		text = fmt.Sprintf(" (%.0f %%)", 100*min(share, 1))
	}
	if took > 0 && done > 0 {
		text += fmt.Sprintf(", %.0f/s", float64(done)/took.Seconds())
	}
	if share > 0 && share < 1 {
		text += fmt.Sprintf(", %s left", shortly(time.Duration(float64(took)*(1/share-1))))
	}
	return text
}

// clear makes room for something else.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(raw(p.w), "\r\x1b[K")
	}
}

// inParts does something with all, part by part, with the progress of it. At an error it
// returns what came of those before.
func inParts[T, R any](p *progress, what string, all []T, do func([]T) ([]R, error)) ([]R, error) {
	defer p.clear()
	done, at := []R{}, 0
	for part := range slices.Chunk(all, partsAtOnce) {
		some, err := do(part)
		done = append(done, some...)
		if err != nil {
			return done, err
		}
		at += len(part)
		p.of(what, int64(at), int64(len(all)))
	}
	return done, nil
}
