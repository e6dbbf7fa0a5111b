package schedule

import (
	"context"
	"errors"
	"maps"
	"slices"
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
func (c *crew) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	life := c.life()
	for n, p := range c.posts {
		since := time.Since(p.beaten)
		if len(p.runs)+p.doubt+len(p.strays) == 0 && !p.beating {
			delete(c.posts, n)
			continue
		}
		if len(p.runs) > 0 && since >= life*lifeUsed/10 && !p.late {
			p.late = true
			c.s.log.Error("runs ended", "partition", n, "runs", len(p.runs), "err", errSilent)
			for r := range p.runs {
				r.end(ErrVoid)
			}
		}
		if since >= life/beatsPerLife && !p.beating {
			p.beating = true
			go c.beatIn(n, p, slices.Collect(maps.Keys(p.runs)), life)
		}
	}
}

var errSilent = errors.New("their worker could not say in time that it lives")

// beatIn says that the runner lives in a partition.
func (c *crew) beatIn(n int, p *post, runs []*run, life time.Duration) {
	began, mine := time.Now(), make([]ischedule.Run, len(runs))
	for i, r := range runs {
		mine[i] = r.Run
	}
	ctx, cancel := context.WithTimeout(c.calls, life/beatsPerLife)
	defer cancel()
	void, others, err := c.s.calls.Beat(ctx, n, c.runner, life, mine)
	c.mu.Lock()
	defer c.mu.Unlock()
	p.beating = false
	if err != nil {
		return // until it is too late
	}
	p.beaten, p.late, p.doubt = began, false, max(p.doubt-1, 0)
	for _, i := range void {
		runs[i].end(ErrVoid)
	}
	strays := map[ischedule.Run]bool{}
	for _, other := range others {
		if p.strays[other] { // for two beats: no reply brings it any more
			go c.finish(&ending{End: ischedule.End{Run: &other, Result: ischedule.Interrupted}, partition: n})
		} else {
			strays[other] = true
		}
	}
	p.strays = strays
}

// beatsOfDoubt is in how many beats a lost reply is looked for.
const beatsOfDoubt = 2
