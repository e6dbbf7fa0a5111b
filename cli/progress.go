package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/words"
)

const (
	progressAfter = 2 * time.Second        // shorter work shows none
	progressEvery = 200 * time.Millisecond // between two lines
	partsAtOnce   = 500                    // dead letters or events that are changed between two lines
)

// A progress shows the progress of a command on the last line of a terminal: how much is done, its
// share of the whole, the rate, and the time left. It writes nothing elsewhere, where a line cannot
// be overwritten.
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

// of shows that so many of all are done. all is 0 if unknown.
func (p *progress) of(what string, done, all int64) {
	if all == 0 {
		p.at(fmt.Sprintf("%s %d", what, done), done, 0)
		return
	}
	p.at(fmt.Sprintf("%s %d of %d", what, done, all), done, float64(done)/float64(all))
}

// at shows a text with the rate of what is done. share is that of the whole, 0 if unknown.
func (p *progress) at(text string, done int64, share float64) {
	now := p.now()
	if p.began.IsZero() {
		p.began = now
	}
	if !p.terminal || now.Sub(p.began) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(raw(p.w), "\r\x1b[K%s%s", shown(text), pace(now.Sub(p.began), done, share))
}

// pace is the share of the whole that is done, the rate, and the time left.
func pace(took time.Duration, done int64, share float64) (text string) {
	if share > 0 {
		text = fmt.Sprintf(" (%.0f %%)", 100*min(share, 1))
	}
	if took > 0 && done > 0 {
		text += fmt.Sprintf(", %.0f/s", float64(done)/took.Seconds())
	}
	if share > 0 && share < 1 {
		text += fmt.Sprintf(", %s left", words.Short(time.Duration(float64(took)*(1/share-1))))
	}
	return text
}

// clear removes the line.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(raw(p.w), "\r\x1b[K")
	}
}

// done removes the line. The next work starts a new measurement.
func (p *progress) done() {
	p.clear()
	p.began = time.Time{}
}

// inParts calls do with all, part by part, and shows the progress. After an error it also returns
// the results so far.
func inParts[T, R any](ctx context.Context, p *progress, what string, all []T, do func(context.Context, []T) ([]R, error)) ([]R, error) {
	defer p.done()
	p.began = p.now()
	done, at := []R{}, 0
	for part := range slices.Chunk(all, partsAtOnce) {
		some, err := do(ctx, part)
		done = append(done, some...)
		if err != nil {
			return done, err
		}
		at += len(part)
		p.of(what, int64(at), int64(len(all)))
	}
	return done, nil
}
