package schedule

import (
	"context"
	"errors"
	"time"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

const (
	beatsPerLife = 3  // a beat follows so early behind the last one that two may fail
	looksPerLife = 12 // how often it is looked whether one is due, or too late
	// lifeUsed is the part of a life, in tenths, after which runs end whose worker could not say that it lives: others take them over when
	// it is over.
	lifeUsed = 8
)

// beat has the life of the runner prolonged where it has runs, and ends those for which that was too long ago. It does not wait for Redis.
func (c *crew) beat(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	for n, runs := range by {
		since := time.Since(c.beaten[n])
		if len(runs) > 0 && since >= life*lifeUsed/10 && !c.late[n] {
			c.late[n] = true
			c.log.Error("runs ended", "partition", n, "runs", len(runs), "err", errSilent)
			for _, r := range runs {
				r.void()
			}
		}
		if since >= life/beatsPerLife && !c.beating[n] {
			c.beating[n] = true
			go c.beatIn(ctx, n, runs, life)
		}
	}
}

var errSilent = errors.New("their worker could not say in time that it lives")

// beatIn says that the runner lives in a partition.
func (c *crew) beatIn(ctx context.Context, n int, runs []*run, life time.Duration) {
	began, mine := time.Now(), make([]ischedule.Run, len(runs))
	for i, r := range runs {
		mine[i] = r.Run
	}
	ctx, cancel := context.WithTimeout(ctx, life/beatsPerLife)
	defer cancel()
	void, others, err := c.s.calls.Beat(ctx, n, c.runner, life, mine)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.beating, n)
	if err != nil {
		return // until it is too late
	}
	c.beaten[n] = began
	delete(c.late, n)
	for _, i := range void {
		runs[i].void()
	}
	strays := map[ischedule.Run]bool{}
	for _, other := range others {
		if c.strays[n][other] { // for two beats: no reply brings it any more
			go c.finish(&ending{End: ischedule.End{Run: &other, Result: ischedule.Interrupted}, partition: n})
		} else {
			strays[other] = true
		}
	}
	c.strays[n] = strays
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
