package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/servers"
)

// tagged runs a test on both servers with the names of a cluster's keys.
func tagged(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, addr string, real bool) {
		e := newEnv(t, addr, real)
		e.Client = e.taggedClient(addr)
		test(t, e)
	})
}

func (e *env) taggedClient(addr string) *Client {
	e.t.Helper()
	c := try(Open(redisconn.Options{URL: "redis://" + addr, Keys: keys.Keys{App: "example", Layout: keys.Cluster}})).must(e.t)
	e.t.Cleanup(func() { c.Close() })
	return c
}

// A sender is an owner that emits to other slots.
type sender struct {
	*env
	p       Partition
	me      Claim
	epoch   int64
	commits int64
	boxed   int64
}

func (e *env) sender(processor, executor string) *sender {
	e.t.Helper()
	s := &sender{env: e, p: e.Partition("orders", processor, 0), me: byPosition(executor)}
	if e.raw.Exists(e.ctx(), s.p.Log).Val() == 0 {
		e.series(s.p.Log, 100)
	}
	s.epoch = e.own(s.p, s.me).Epoch
	return s
}

// emit commits the next event with outputs for some partitions of bills, and returns the commit.
func (s *sender) emit(to ...int) Commit {
	s.t.Helper()
	s.commits++
	ch := &Changes{}
	for _, n := range to {
		ch.Outputs = append(ch.Outputs, Output{Stream: "bills", Partition: n, Fields: []string{"data", fmt.Sprint(s.epoch, " ", s.commits, " ", n), "__key", "k"}})
	}
	next := try(s.raw.XRangeN(s.ctx(), s.p.Log, "("+s.raw.HGet(s.ctx(), s.p.Own, "floor").Val(), "+", 1).Result()).must(s.t)[0].ID
	boxes, _ := s.Boxes(s.p, ch.Outputs)
	one := Commit{Partition: s.p, Claim: s.me, Number: s.commits, Committed: next, Read: -1, Changes: ch, Epoch: s.epoch, Boxed: s.boxed, Boxes: boxes}
	s.must(s.store(one))
	s.boxed += one.Boxes
	return one
}

// came returns what a partition of bills has.
func (e *env) came(n int) (all []string) {
	e.t.Helper()
	for _, m := range try(e.raw.XRange(e.ctx(), e.keys.Partition("bills", n), "-", "+").Result()).must(e.t) {
		all = append(all, fmt.Sprint(m.Values["data"]))
	}
	return all
}

// carry has a courier bring all away.
func (e *env) carry(c *Courier) (came int64) {
	e.t.Helper()
	c.Look()
	for again := time.Duration(0); again >= 0; {
		n, next, err := c.Round(e.ctx())
		e.must(err)
		came, again = came+n, next
		time.Sleep(max(again, 0))
	}
	return came
}

func TestOutputsForOtherSlotsComeOnce(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		one := s.emit(0, 1, 2, 1)
		equal(t, "its own slot", e.came(0), []string{fmt.Sprint(s.epoch, " 1 0")})
		equal(t, "in the outbox", try(e.Outputs(e.ctx(), []Partition{s.p})).must(t), []int64{3})
		e.must(s.store(one)) // AGAIN
		equal(t, "in the outbox", try(e.Outputs(e.ctx(), []Partition{s.p})).must(t), []int64{3})

		first, second := e.NewCourier(s.p), e.NewCourier(s.p)
		equal(t, "came", e.carry(first), 3)
		equal(t, "came again", e.carry(second), 0)
		equal(t, "in the outbox", try(e.Outputs(e.ctx(), []Partition{s.p})).must(t), []int64{0})
		s.emit(1, 1)
		equal(t, "came by another", e.carry(second), 2)
		s.emit(1)
		equal(t, "came", e.carry(first), 1)
		at := func(commit int) string { return fmt.Sprint(s.epoch, " ", commit, " 1") }
		equal(t, "in order", e.came(1), []string{at(1), at(1), at(2), at(2), at(3)})
		equal(t, "the epoch there", try(e.LastHop(e.ctx(), s.p, StreamPartition{"bills", 1})).must(t), s.epoch)
		equal(t, "elsewhere", try(e.LastHop(e.ctx(), s.p, StreamPartition{"bills", 7})).must(t), 0)
	})
}

// The next owner brings what the one before has left, before its own.
func TestOutputsOfAnOwnerThatIsGone(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		one := e.sender("printer", alice)
		one.emit(1)
		other := e.sender("printer", bob)
		other.emit(1)
		late := e.NewCourier(one.p)
		try2(late.Round(e.ctx())).must(t)
		equal(t, "read", late.Carries(), 2)
		e.carry(e.NewCourier(other.p))
		equal(t, "came late", e.carry(late), 0)
		equal(t, "in order", e.came(1), []string{fmt.Sprint(one.epoch, " 1 1"), fmt.Sprint(other.epoch, " 1 1")})
	})
}

// Requests and replies go missing, and requests come late: each output comes once, in order.
func TestHopsThatGoMissing(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	way := faultproxy.Start(t, e.addr)
	e.Client = e.taggedClient(way.Addr())
	s, want, came := e.sender("printer", alice), map[int][]string{}, int64(0)
	c := e.NewCourier(s.p)
	for i := range 40 {
		to := []int{1 + rand.IntN(3), 1 + rand.IntN(3)}
		s.emit(to...)
		for _, n := range to {
			want[n] = append(want[n], fmt.Sprint(s.epoch, " ", s.commits, " ", n))
		}
		script := []*redis.Script{hopScript, outboxScript}[i%2]
		missing := way.On("EVALSHA", 1).Containing(script.Hash()).Do([]faultproxy.Action{faultproxy.CloseBefore, faultproxy.CloseAfter, faultproxy.Hold}[rand.IntN(3)])
		for again := time.Duration(0); again >= 0; {
			c.Look()
			ctx, cancel := context.WithTimeout(e.ctx(), time.Second)
			if missing.Hits() == 0 {
				cancel()
				ctx, cancel = context.WithTimeout(e.ctx(), 50*time.Millisecond)
			}
			n, next, err := c.Round(ctx)
			if came += n; err == nil {
				again = next
			}
			cancel()
			time.Sleep(max(again, 0))
		}
		missing.Release() // what was held is late now
		if i%10 == 9 {
			c = e.NewCourier(s.p)
		}
	}
	for n := 1; n <= 3; n++ {
		equal(t, fmt.Sprint("partition ", n), e.came(n), want[n])
	}
	equal(t, "came", came, 80)
}

// A target that is full keeps no other waiting, and gets what is for it as far as there is room.
func TestATargetThatIsFull(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		try(e.EnsureMeta(e.ctx(), "bills", Meta{Partitions: 4, MaxLen: 2, Codec: "json", Partitioner: "xxh64", Overflow: OverflowReject, Processors: []string{"mailer"}})).must(t)
		s := e.sender("printer", alice)
		mailer := e.Partition("bills", "mailer", 1)
		e.must(e.raw.XGroupCreateMkStream(e.ctx(), mailer.Log, GroupName("mailer", bob), "0").Err())
		e.must(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: mailer.Log, Values: []any{"data", "of another sender"}}).Err())
		s.emit(1, 1, 1, 1, 1, 2)
		s.emit(2)
		var told []error
		c := e.NewCourier(s.p)
		c.Failed = func(to StreamPartition, err error) {
			if to.Partition == 1 {
				told = append(told, err)
			}
		}
		for len(told) < 3 {
			try2(c.Round(e.ctx())).must(t)
		}
		equal(t, "came", []int{len(e.came(1)), len(e.came(2))}, []int{2, 2})
		equal(t, "in the outbox", try(e.Outputs(e.ctx(), []Partition{s.p})).must(t)[0] >= 3, true)
		if full := (*FullError)(nil); !errors.As(told[0], &full) || full.Processor != "mailer" || !strings.Contains(told[0].Error(), "outputs to partition 1 of stream bills: ") {
			t.Errorf("told %v", told[0])
		}
		for len(e.came(1)) > 0 || c.Carries() > 0 { // the mailer is done with what there is
			e.must(e.raw.XTrimMaxLen(e.ctx(), mailer.Log, 0).Err())
			try2(c.Round(e.ctx())).must(t)
			time.Sleep(time.Millisecond)
		}
		equal(t, "told at last", told[len(told)-1], nil)
		equal(t, "left", try(e.Outputs(e.ctx(), []Partition{s.p})).must(t), []int64{0})
	})
}

func try2(_ int64, again time.Duration, err error) outcome[time.Duration] {
	return outcome[time.Duration]{again, err}
}

// Of more than a courier keeps in memory it reads no more, and goes on when there is room.
func TestACourierKeepsALimitedNumber(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		locked := e.keys.Partition("bills", 1)
		e.must(e.raw.Set(e.ctx(), locked, "no stream", 0).Err())
		const each = 60
		var to []int
		for range each {
			to = append(to, 1)
		}
		n := 0
		for ; n < 2*1024; n += each {
			s.emit(to...)
		}
		c := e.NewCourier(s.p)
		for !c.Behind() {
			try2(c.Round(e.ctx())).must(t)
		}
		for range 5 {
			try2(c.Round(e.ctx())).must(t)
		}
		if c.Carries() >= 1024+entriesPerRead {
			t.Errorf("carries %d", c.Carries())
		}
		e.must(e.raw.Del(e.ctx(), locked).Err())
		equal(t, "came", e.carry(c), int64(n))
	})
}

// Of large entries it reads one at a time, and keeps few.
func TestACourierKeepsFewLargeEntries(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		const n = 12
		large := strings.Repeat("x", 1<<20)
		for i := range n {
			e.must(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: s.p.Outbox, ID: fmt.Sprint(s.epoch, "-", i+1), Values: []any{"to", "1 bills", "data", large}}).Err())
		}
		locked := e.keys.Partition("bills", 1)
		e.must(e.raw.Set(e.ctx(), locked, "no stream", 0).Err())
		c := e.NewCourier(s.p)
		for i := range 2 * n {
			try2(c.Round(e.ctx())).must(t)
			equal(t, "carries", c.Carries(), min(i+1, 8))
		}
		e.must(e.raw.Del(e.ctx(), locked).Err())
		equal(t, "came", e.carry(c), n)
	})
}

// A target that has lost what came, as after a failover to a replica that was behind, is told; what is left comes.
func TestATargetThatHasForgotten(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		c := e.NewCourier(s.p)
		var forgot []string
		c.Forgot = func(to StreamPartition, had, has string) { forgot = append(forgot, fmt.Sprint(to, " ", had, " ", has)) }
		s.emit(1)
		e.carry(c)
		e.must(e.raw.Del(e.ctx(), keys.MustKind("hop").Key(e.keys, "bills", "", "", 1)).Err())
		s.emit(1)
		e.carry(c)
		equal(t, "forgot", forgot, []string{fmt.Sprintf("{bills 1} %d-1 0-0", s.epoch)})
		equal(t, "came", len(e.came(1)), 2)
	})
}

// An outbox with newer entries than a commit has, which only a hand that deletes the ownership hash leaves, refuses it as a whole.
func TestAnOutboxThatIsAhead(t *testing.T) {
	t.Parallel()
	tagged(t, func(t *testing.T, e *env) {
		s := e.sender("printer", alice)
		e.must(e.raw.XAdd(e.ctx(), &redis.XAddArgs{Stream: s.p.Outbox, ID: fmt.Sprint(s.epoch+1, "-1"), Values: []any{"to", "1 bills", "data", "x"}}).Err())
		one := Commit{Partition: s.p, Claim: s.me, Number: 1, Committed: "1-1", Read: -1, Epoch: s.epoch, Boxes: 1,
			Changes: &Changes{Outputs: []Output{{Stream: "bills", Partition: 1, Fields: []string{"data", "x"}}}}}
		if err := s.store(one); !errors.Is(err, ErrBehind) {
			t.Errorf("got %v", err)
		}
		equal(t, "the position", e.raw.HGet(e.ctx(), s.p.Own, "floor").Val(), "0-0")
	})
}

// What cannot be done to the outbox or the target leaves nothing half done.
func TestHopsAreWhole(t *testing.T) {
	t.Parallel()
	e := realEnv(t)
	e.Client = e.taggedClient(e.addr)
	s := e.sender("printer", alice)
	s.emit(1, 1)
	hops := keys.MustKind("hop").Key(e.keys, "bills", "", "", 1)
	for _, key := range []string{e.keys.Partition("bills", 1), hops} {
		e.must(e.raw.Set(e.ctx(), key, "wrong", 0).Err())
		var told error
		c := e.NewCourier(s.p)
		c.Failed = func(_ StreamPartition, err error) { told = err }
		e.unchanged(key, func() error {
			for told == nil {
				try2(c.Round(e.ctx())).must(t)
			}
			return told
		}, func(err error) bool { return errors.Is(err, redisconn.ErrWrongType) })
		e.must(e.raw.Del(e.ctx(), key).Err())
	}
	equal(t, "came", e.carry(e.NewCourier(s.p)), 2)
	for n, right := range []string{"-xadd", "-hset"} {
		s.emit(1)
		name := fmt.Sprint("weak", n)
		e.user(name, right)
		weak := try(Open(redisconn.Options{URL: "redis://" + name + ":pw@" + e.addr, Keys: e.keys})).must(t)
		var told error
		c := weak.NewCourier(s.p)
		c.Failed = func(_ StreamPartition, err error) { told = err }
		e.unchanged(right, func() error {
			for told == nil {
				try2(c.Round(e.ctx())).must(t)
			}
			return told
		}, redisconn.Denied)
		weak.Close()
	}
	equal(t, "came", slices.Max([]int64{e.carry(e.NewCourier(s.p)), 0}), 2)
}

// With Durability nothing that was read of an outbox is sent before replicas have it: else a failover may forget the commit, and
// its outputs come a second time. Nothing counts as having come before replicas of the target have it.
func TestHopsWaitForReplicas(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.Client = l.taggedClient(l.addr)
	s := l.sender("printer", alice)
	c := l.durable(100 * time.Millisecond).NewCourier(s.p)
	l.link.Pause()
	s.emit(1)
	_, _, err := c.Round(l.ctx())
	l.weak("what was read", err)
	equal(t, "came", len(l.came(1)), 0)
	l.link.Resume()
	for c.Carries() == 0 {
		c.Round(l.ctx())
	}
	l.link.Pause()
	c.Round(l.ctx())
	equal(t, "came, and may be forgotten", []int{len(l.came(1)), c.Carries()}, []int{1, 1})
	c.Round(l.ctx()) // which finds it there
	equal(t, "came, and may be forgotten", []int{len(l.came(1)), c.Carries()}, []int{1, 1})
	l.link.Resume()
	counted := int64(0)
	for c.Carries() > 0 { // until a replica has confirmed in time
		n, _, _ := c.Round(l.ctx())
		counted += n
	}
	equal(t, "counted now, and came", []int{int(counted), len(l.came(1))}, []int{1, 1})
}
