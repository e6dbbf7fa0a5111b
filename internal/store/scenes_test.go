package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// Bounds for the server's own time in a scene.
const (
	longestScript = 20 * time.Millisecond
	longestRow    = 100 * time.Millisecond
)

// meteredEnv returns an env whose client is measured, and whose raw one is not.
func meteredEnv(t *testing.T) (*env, *redistest.Meter) {
	t.Helper()
	s := redistest.Start(t)
	m := redistest.StartMeter(t, s)
	e := newEnv(t, m.Addr(), true)
	e.raw = s.Client(t)
	return e, m
}

func TestManyDelayedEventsDueAtOnce(t *testing.T) {
	tier.Sequential(t)
	const partitions, events = 64, 2000
	e, meter := meteredEnv(t)
	_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: partitions, MaxLen: 10 * events, Overflow: OverflowReject, Processors: []string{"printer"}})
	e.must(err)
	first, d := e.dueKeys("orders", 0), Append{Stream: "orders"}
	for range events {
		d.Add([]string{"data", strings.Repeat("x", 100)}, "", &Due{After: time.Hour})
	}
	places := make([]StreamPartition, partitions)
	prepare := func() {
		e.must(e.raw.FlushAll(e.ctx()).Err())
		e.must(e.Append(e.ctx(), []Append{d})[0].Err)
		e.must(e.raw.Do(e.ctx(), "ZUNIONSTORE", first.Due, 1, first.Due, "WEIGHTS", 0).Err()) // all are due
		for i := range places {
			places[i] = StreamPartition{"orders", i}
			if names := e.dueKeys("orders", i).Names(); i > 0 {
				for k, key := range first.Names() {
					e.must(e.raw.Copy(e.ctx(), key, names[k], 0, false).Err())
				}
			}
		}
	}
	cost := meter.Hold(longestScript, longestRow, prepare, func() {
		for moved := int64(0); moved < partitions*events; {
			for _, m := range e.Move(e.ctx(), places) {
				e.must(m.Err)
				moved += m.Events
			}
		}
	})
	t.Log(cost)
	for i := range places {
		equal(t, "length", e.raw.XLen(e.ctx(), e.keys.Partition("orders", i)).Val(), events)
	}
}

// A broad is a stream with many processors; each was given some of the entries of each partition
// and has acked some of these.
type broad struct {
	*env
	partitions, processors, entries, size int
}

func (c broad) places() (ps []Partition) {
	for n := range c.partitions {
		for i := range c.processors {
			ps = append(ps, c.Partition("orders", c.name(i), n))
		}
	}
	return ps
}

func (c broad) name(i int) string { return fmt.Sprint("processor", i) }

// fill makes the stream; each partition is a copy of the first one.
func (c broad) fill() {
	c.t.Helper()
	meta := Meta{Partitions: c.partitions, MaxLen: int64(c.entries), Overflow: OverflowReject}
	var groups []any
	for i := range c.processors {
		meta.Processors = append(meta.Processors, c.name(i))
		groups = append(groups, GroupName(c.name(i), alice))
	}
	try(c.EnsureMeta(c.ctx(), "orders", meta)).must(c.t)
	log := c.keys.Partition("orders", 0)
	c.grow(log, c.entries, c.size)
	c.must(c.raw.Eval(c.ctx(), `local entries = redis.call('XLEN', KEYS[1])
		for i, group in ipairs(ARGV) do
			local read = i % entries
			redis.call('XGROUP', 'CREATE', KEYS[1], group, read .. '-1', 'ENTRIESREAD', read)
			for id = math.max(read - 1, 1), read do
				redis.call('XCLAIM', KEYS[1], group, 'runnel', 0, id .. '-1', 'FORCE', 'JUSTID')
			end
		end
		return 1`, []string{log}, groups...).Err())
	pipe := c.raw.Pipeline()
	for n := range c.partitions {
		if n > 0 {
			pipe.Copy(c.ctx(), log, c.keys.Partition("orders", n), 0, false)
		}
	}
	for _, p := range c.places() {
		pipe.Set(c.ctx(), p.Lock, tenure(alice, 1).LockValue(), time.Hour)
		pipe.HSet(c.ctx(), p.Own, "tenure", tenure(alice, 1).LockValue(), "epoch", 1, "floor", "0-0", "read", 0)
		pipe.HSet(c.ctx(), p.Retry, "1-1", `{"v":1,"lane":"k","first":5,"last":7}`)
	}
	try(pipe.Exec(c.ctx())).must(c.t)
}

// Views let others be served, however many processors a stream has and however large its events
// are.
func TestLooksDoNotHoldTheServer(t *testing.T) {
	tier.Sequential(t)
	for _, tt := range []struct{ partitions, processors, entries, size int }{
		{128, 50, 20, 100},
		{16, 100, 20, 100 << 10},
		{16, 100, 8, 100 << 10},
		{512, 1, 20, 100},
	} {
		t.Run(fmt.Sprintf("%d times %d with %d of %d bytes", tt.partitions, tt.processors, tt.entries, tt.size), func(t *testing.T) {
			e, m := meteredEnv(t)
			c := broad{e, tt.partitions, tt.processors, tt.entries, tt.size}
			c.fill()
			_, err := e.Views(e.ctx(), c.places()) // loads the script
			e.must(err)
			t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
				ps := c.places()
				views := try(e.Views(e.ctx(), ps)).must(t)
				equal(t, "views", len(views), len(ps))
				for i, v := range views {
					e.must(v.Err)
					read := int64((i%tt.processors + 1) % tt.entries)
					if v.Owner != alice || v.Failed != 1 || v.Pending != min(read, 2) || v.Behind != int64(tt.entries)-read {
						t.Fatalf("partition %d, processor %s: %+v", ps[i].Number, ps[i].Processor, v)
					}
				}
			}))
		})
	}
}

// Trimming looks at all groups of a partition.
func TestTrimsDoNotHoldTheServer(t *testing.T) {
	for _, tt := range []struct{ partitions, processors, entries, size int }{
		{128, 50, 20, 100},
		{16, 100, 20, 100 << 10},
	} {
		t.Run(fmt.Sprintf("%d times %d with %d bytes", tt.partitions, tt.processors, tt.size), func(t *testing.T) {
			e, m := meteredEnv(t)
			c := broad{e, tt.partitions, tt.processors, tt.entries, tt.size}
			c.fill()
			var processors []string
			for i := range c.processors {
				processors = append(processors, c.name(i))
			}
			var ts []TrimRequest
			for n := range c.partitions {
				ts = append(ts, TrimRequest{Log: c.keys.Partition("orders", n), Processors: processors, Size: 1})
			}
			t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
				try(e.Trim(e.ctx(), ts)).must(t)
			}))
		})
	}
}

// Many parked events of one key are read, changed and dropped page by page.
func TestManyParkedEventsDoNotHoldTheServer(t *testing.T) {
	tier.Sequential(t)
	const events = 50_000
	e, m := meteredEnv(t)
	p := e.Partition("orders", "printer", 0)
	state, err := RetryState{Lane: KeyLane("customer"), Key: "customer", Attempts: 1, At: 1 << 50, First: 5, Last: 7, Error: "no"}.encode()
	e.must(err)
	prepare := func() {
		e.must(e.raw.Eval(e.ctx(), `local data = string.rep('x', 100)
			for i = 1, ARGV[2] do
				redis.call('HSET', KEYS[1], i .. '-1', ARGV[1])
				redis.call('HSET', KEYS[2], i .. '-1', data)
			end
			return 1`, []string{p.Retry, p.Parked}, state, events).Err())
	}
	var ids []string
	t.Log("load and look:", m.Hold(longestScript, longestRow, prepare, func() {
		states, _, err := e.Retries(e.ctx(), p)
		e.must(err)
		ids = ids[:0]
		for _, s := range states {
			ids = append(ids, s.ID)
		}
		v := e.view(p)
		equal(t, "parked, failed, read", []int64{v.Parked, v.Failed, int64(len(ids))}, []int64{events, -1, events})
	}))
	t.Log("retry now:", m.Hold(longestScript, longestRow, prepare, func() {
		due := try(e.RetryNow(e.ctx(), p, ids)).must(t)
		equal(t, "due", len(due), events)
	}))
	t.Log("drop:", m.Hold(longestScript, longestRow, prepare, func() { try(e.DropParked(e.ctx(), p, ids)).must(t) }))
	equal(t, "parked", e.view(p).Parked, 0)
}

// Views of records of 60 MB, and of states that hold keys of a megabyte.
func TestALookAtHugeRecordsDoesNotHoldTheServer(t *testing.T) {
	tier.Sequential(t)
	e, m := meteredEnv(t)
	var ps []Partition
	for n := range 2 {
		for _, name := range []string{"printer", "mailer", "biller"} {
			ps = append(ps, e.Partition("orders", name, n))
		}
		p := ps[len(ps)-1]
		e.must(e.raw.Do(e.ctx(), "XADD", p.Log, "1-1", "data", strings.Repeat("x", 60_000_000)).Err())
		e.must(e.raw.XGroupCreate(e.ctx(), p.Log, GroupName(p.Processor, alice), "0").Err())
		e.pend(p, alice, n)
		e.must(e.raw.Eval(e.ctx(), `local state = '{"v":1,"lane":"k' .. string.rep('k', 1000000) .. '","first":1}'
			for i = 1, 40 do redis.call('HSET', KEYS[1], i .. '-1', state) end return 1`, []string{p.Retry}).Err())
	}
	t.Log(m.Hold(longestScript, longestRow, func() {}, func() {
		views := try(e.Views(e.ctx(), ps)).must(t)
		for i, v := range views {
			e.must(v.Err)
			equal(t, fmt.Sprint("not acked of ", i), v.Pending+v.Behind, int64(1))
		}
		equal(t, "parked, failed", []int64{views[5].Parked, views[5].Failed}, []int64{40, -1})
	}))
}
