package rstream

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// grow appends n entries of so many bytes each, 1-1 and so on.
func (e *env) grow(log string, n, size int) {
	e.t.Helper()
	e.must(e.raw.Eval(e.ctx(), `local data = string.rep('x', ARGV[2])
		for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-1', 'data', data) end return 1`, []string{log}, n, size).Err())
}

// pend makes the first n entries pending, as a read does, without sending them.
func (e *env) pend(p Place, executor string, n int) {
	e.t.Helper()
	e.must(e.raw.Eval(e.ctx(), `for i = 1, ARGV[2] do redis.call('XCLAIM', KEYS[1], ARGV[1], 'runnel', 0, i .. '-1', 'FORCE', 'JUSTID') end
		redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], ARGV[2] .. '-1', 'ENTRIESREAD', ARGV[2]) return 1`,
		[]string{p.Log}, GroupName(p.Processor, executor), n).Err())
}

// changes has partitions change hands, between owners that are never the same.
type changes struct {
	*env
	places []Place
	tenure uint64
}

func (c *changes) next() Tenure {
	c.tenure++
	return tenure(fmt.Sprintf("%016d", c.tenure), c.tenure)
}

func (c *changes) last() Tenure { return tenure(fmt.Sprintf("%016d", c.tenure), c.tenure) }

// each does something for all partitions at once, as a worker does.
func (c *changes) each(do func(p Place) error) {
	c.t.Helper()
	var wg sync.WaitGroup
	for _, p := range c.places {
		wg.Go(func() {
			if err := do(p); err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// take has the next owner take all partitions over.
func (c *changes) take() {
	c.t.Helper()
	t := c.next()
	c.each(func(p Place) error {
		if err := c.Lock(c.ctx(), p, t, time.Minute, 0); err != nil {
			return err
		}
		_, err := c.Takeover(c.ctx(), p, t, "", 0)
		return err
	})
}

// die leaves all partitions without their owner, which had been given n entries of each.
func (c *changes) die(n int) {
	c.t.Helper()
	for _, p := range c.places {
		if c.tenure == 0 {
			c.own(p, tenure(alice, 1))
			c.pend(p, alice, n)
		} else {
			c.pend(p, c.last().Executor, n)
		}
		c.must(c.raw.Del(c.ctx(), p.Lock).Err())
	}
}

// However much is pending, and however large it is, a takeover copies none of it.
func TestTakeoversDoNotHoldTheServer(t *testing.T) {
	for _, tt := range []struct{ partitions, entries, size int }{
		{1, 1000, 100 << 10},
		{1, 250, 1 << 20},
		{64, 800, 10 << 10},
		{64, 1000, 100},
	} {
		t.Run(fmt.Sprintf("%d of %d times %d bytes", tt.partitions, tt.entries, tt.size), func(t *testing.T) {
			e, m := meteredEnv(t)
			c := &changes{env: e}
			for i := range tt.partitions {
				c.places = append(c.places, e.Place("orders", "printer", i))
				e.grow(c.places[i].Log, tt.entries, tt.size)
			}
			t.Log(m.Hold(longestScript, longestRow, func() { c.die(tt.entries) }, c.take))
		})
	}
}
