package schedule

import (
	"context"
	"sync"
	"time"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// beat prolongs the life of the runner where it has runs, and ends those that are not its own any more, or that may soon not be.
func (c *crew) beat(ctx context.Context) {
	c.mu.Lock()
	by, life := map[int][]*run{}, c.expiry
	for n := range c.doubt {
		by[n] = nil
	}
	for r := range c.runs {
		by[r.partition] = append(by[r.partition], r)
	}
	for n := range c.beaten {
		if _, looked := by[n]; !looked {
			delete(c.beaten, n)
		}
	}
	due := map[int]time.Time{}
	for n := range by {
		if at := c.beaten[n]; time.Since(at) >= life/3 {
			due[n] = at
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, life/3)
	defer cancel()
	var all sync.WaitGroup
	for n, last := range due {
		all.Go(func() { c.beatIn(ctx, n, by[n], last, life) })
	}
	all.Wait()
}

func (c *crew) beatIn(ctx context.Context, n int, runs []*run, last time.Time, life time.Duration) {
	began, mine := time.Now(), make([]ischedule.Run, len(runs))
	for i, r := range runs {
		mine[i] = r.Run
	}
	void, others, err := c.s.calls.Beat(ctx, n, c.runner, life, mine)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if time.Since(last) >= life*4/5 {
			c.log.Error("runs ended", "partition", n, "runs", len(runs), "err", err)
			for _, r := range runs {
				r.void()
			}
		}
		return
	}
	c.beaten[n] = began
	for _, i := range void {
		runs[i].void()
	}
	for _, other := range others {
		if c.strays[other] { // for two beats: no reply brings it any more
			delete(c.strays, other)
			go c.finish(&ending{End: ischedule.End{Run: &other, Result: ischedule.Interrupted}, partition: n})
		} else {
			c.strays[other] = true
		}
	}
	if c.doubt[n]--; c.doubt[n] <= 0 {
		delete(c.doubt, n)
	}
}

// beatsOfDoubt is in how many beats a lost reply is looked for.
const beatsOfDoubt = 2

func (r *run) void() {
	if r.end != nil {
		r.end(ErrVoid)
	}
}
