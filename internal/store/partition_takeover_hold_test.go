package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/tier"
)

// grow appends n entries of size bytes each, from 1-1 on.
func (e *env) grow(log string, n, size int) {
	e.t.Helper()
	e.must(e.raw.Eval(e.ctx(), `local data = string.rep('x', ARGV[2])
		for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-1', 'data', data) end return 1`, []string{log}, n, size).Err())
}

// pend makes the first n entries pending, as a read does, without sending them.
func (e *env) pend(p Partition, executor string, n int) {
	e.t.Helper()
	e.must(e.raw.Eval(e.ctx(), `for i = 1, ARGV[2] do redis.call('XCLAIM', KEYS[1], ARGV[1], 'runnel', 0, i .. '-1', 'FORCE', 'JUSTID') end
		redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], ARGV[2] .. '-1', 'ENTRIESREAD', ARGV[2]) return 1`,
		[]string{p.Log}, GroupName(p.Processor, executor), n).Err())
}

// changes hands partitions over, each time to a new owner.
type changes struct {
	*env
	places []Partition
	tenure uint64
}

func (c *changes) next() Claim {
	c.tenure++
	return tenure(fmt.Sprintf("%016d", c.tenure), c.tenure)
}

func (c *changes) last() Claim { return tenure(fmt.Sprintf("%016d", c.tenure), c.tenure) }

// each calls do for all partitions at once, as a worker does.
func (c *changes) each(do func(p Partition) error) {
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

// take lets the next owner take all partitions over.
func (c *changes) take() {
	c.t.Helper()
	t := c.next()
	c.each(func(p Partition) error {
		if err := c.Lock(c.ctx(), p, t, time.Minute, 0); err != nil {
			return err
		}
		_, err := c.Takeover(c.ctx(), p, t, "", 0)
		return err
	})
}

// die leaves all partitions without their owner, after it was given n entries of each.
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

// A takeover copies no pending entry, however many and large they are.
func TestTakeoversDoNotHoldTheServer(t *testing.T) {
	tier.Sequential(t)
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
				c.places = append(c.places, e.Partition("orders", "printer", i))
				e.grow(c.places[i].Log, tt.entries, tt.size)
			}
			t.Log(m.Hold(longestScript, longestRow, func() { c.die(tt.entries) }, c.take))
		})
	}
}

// After a clean release a takeover uses what the release stored, and finds out nothing.
func TestATakeoverBeginsWhereAReleaseWas(t *testing.T) {
	for _, tt := range []struct {
		name string
		acks int
		want string
	}{
		{"some are left", 2, "2-1"},
		{"none was acked", 0, "0-0"},
		{"all are done", 4, "4-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e *env) {
				p := e.Partition("orders", "printer", 0)
				e.fill(p.Log, 6)
				e.own(p, tenure(alice, 1))
				read := e.read(p, alice, 4)
				if tt.acks > 0 {
					e.ack(p, alice, read[:tt.acks]...)
				}
				released := LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: tt.want, Read: int64(tt.acks)}
				for range 2 {
					e.release(released)
				}
				pos := e.own(p, tenure(bob, 1))
				equal(t, "unclean", pos.Crashed, false)
				if e.real {
					equal(t, "floor, read", []any{pos.Committed, pos.Read}, []any{tt.want, int64(tt.acks)})
				}
				equal(t, "rest", len(e.read(p, bob, 10)), 6-tt.acks)
			})
		})
	}
}

// What a release stored is void once another worker has owned the partition or its group differs.
func TestATakeoverDoesNotTrustAnOlderRelease(t *testing.T) {
	for _, tt := range []struct {
		name  string
		since func(e *env, p Partition)
		floor string
		lost  int64
	}{
		{"one who died owned it", func(e *env, p Partition) {
			e.own(p, tenure(carol, 1))
			read := e.read(p, carol, 2)
			e.ack(p, carol, read...)
		}, "4-1", 0},
		{"acked by hand", func(e *env, p Partition) {
			e.ack(p, alice, "3-1", "4-1")
		}, "4-1", 0},
		{"the group was set back", func(e *env, p Partition) {
			e.ack(p, alice, "3-1", "4-1")
			e.must(e.raw.XGroupSetID(e.ctx(), p.Log, GroupName("printer", alice), "1-1").Err())
		}, "1-1", 0},
		{"trimmed", func(e *env, p Partition) { e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 1).Err()) }, "2-1", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := realEnv(t)
			p := e.Partition("orders", "printer", 0)
			e.fill(p.Log, 6)
			e.own(p, tenure(alice, 1))
			read := e.read(p, alice, 4)
			e.ack(p, alice, read[:2]...)
			e.release(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "2-1", Read: 2})
			tt.since(e, p)
			pos := e.own(p, tenure(bob, 1))
			equal(t, "floor, lost", []any{pos.Committed, pos.Lost}, []any{tt.floor, tt.lost})
		})
	}
}

// At both ends the number of entries read is known, for a new processor and after a reset.
func TestResetKnowsTheNumberReadAtBothEnds(t *testing.T) {
	for to, want := range map[string]string{"0-0": "3", "3-1": "3", "4-1": "", "$": "10", "10-1": "10", "99-1": "10"} {
		t.Run(to, func(t *testing.T) {
			e := realEnv(t)
			p := e.Partition("orders", "printer", 0)
			e.fill(p.Log, 10)
			e.must(e.raw.XTrimMaxLen(e.ctx(), p.Log, 7).Err())
			e.own(p, tenure(alice, 1))
			try(e.Reset(e.ctx(), p, tenure(alice, 1), to)).must(t)
			equal(t, "read", e.raw.HGet(e.ctx(), p.Own, "read").Val(), want)
			if g := e.raw.XInfoGroups(e.ctx(), p.Log).Val(); want != "" {
				equal(t, "read, as the group says", fmt.Sprint(len(g), g[0].EntriesRead), "1 "+want)
			}
		})
	}
}

// changesOfOwners are what can happen to a partition whose owner has four of five entries.
func changesOfOwners() map[string]func(e *env, p Partition) {
	die := func(e *env, p Partition) { e.own(p, tenure(bob, 1)) }
	return map[string]func(e *env, p Partition){
		"pending": die,
		"acked": func(e *env, p Partition) {
			e.ack(p, alice, "1-1", "2-1")
			die(e, p)
		},
		"all acked": func(e *env, p Partition) {
			e.ack(p, alice, "1-1", "2-1", "3-1", "4-1")
			die(e, p)
		},
		"a failover forgot what was read": func(e *env, p Partition) {
			e.must(e.raw.HSet(e.ctx(), p.Own, "floor", "1-1", "read", 1).Err())
			e.ack(p, alice, "1-1", "2-1", "3-1", "4-1")
			e.must(e.raw.Do(e.ctx(), "XGROUP", "SETID", p.Log, GroupName("printer", alice), "4-1", "ENTRIESREAD", 1).Err())
			die(e, p)
		},
		"released": func(e *env, p Partition) {
			e.release(LeaseRequest{Partition: p, Claim: tenure(alice, 1), Committed: "0-0", Read: 0})
			die(e, p)
		},
		"the group is gone": func(e *env, p Partition) {
			e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, GroupName("printer", alice)).Err())
			die(e, p)
		},
		"from the end": func(e *env, p Partition) {
			q := e.Partition("orders", "mailer", 0)
			e.must(e.raw.Del(e.ctx(), q.Lock, q.Own).Err())
			e.lock(q, tenure(bob, 1))
			try(e.Takeover(e.ctx(), q, tenure(bob, 1), "$", 0)).must(e.t)
		},
		"reset to the end": func(e *env, p Partition) {
			try(e.Reset(e.ctx(), p, tenure(alice, 1), "$")).must(e.t)
		},
		"reset to the beginning": func(e *env, p Partition) {
			try(e.Reset(e.ctx(), p, tenure(alice, 1), "0-0")).must(e.t)
		},
	}
}

// No script copies a record, however large, except the one that appends it.
func TestNoScriptThatTakesOverCopiesARecord(t *testing.T) {
	owner := func(e *env, p Partition, do func(e *env, p Partition)) func() {
		return func() {
			e.must(e.raw.Del(e.ctx(), p.Lock, p.Own).Err())
			for name := range e.groups(p.Log) {
				e.must(e.raw.XGroupDestroy(e.ctx(), p.Log, name).Err())
			}
			e.own(p, tenure(alice, 1))
			e.pend(p, alice, 4)
			do(e, p)
		}
	}
	for name, do := range changesOfOwners() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameTime(t, func(e *env, record string) time.Duration {
				p := e.Partition("orders", "printer", 0)
				for i := range 5 {
					e.must(e.raw.Do(e.ctx(), "XADD", p.Log, fmt.Sprint(i+1, "-1"), "data", record).Err())
				}
				return e.scriptTime(owner(e, p, do))
			})
		})
	}
}

// release does a clean release.
func (e *env) release(r LeaseRequest) {
	e.t.Helper()
	try(e.Release(e.ctx(), r)).must(e.t)
}
