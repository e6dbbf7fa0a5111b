package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// When a lease ends whose suspect waits to run alone, other partitions of the worker stop waiting.
func TestEndOfAnOwnershipEndsItsTurn(t *testing.T) {
	var own *partition
	p := &Processor{Prefetch: 1, PrefetchBytes: 1}
	p.Consume = func(context.Context, Input) error {
		want(t, "alone beside another one", own.source.turn.claim(isolationExclusive), false)
		own.beginEnd()
		return nil
	}
	own = NewFed(p, nil, 0).p
	other := NewFed(p, nil, 0).p
	other.source.turn.of = own.source.turn.of
	own.expiry, other.expiry = time.Minute, time.Minute
	want(t, "another one that shares", other.source.turn.claim(isolationShared), true)
	m := &member{executor: &executor{p: p}}
	m.consume(own, nil)
	other.source.turn.letGo()
	want(t, "it shares again", other.source.turn.claim(isolationShared), true)
}

// A testClaimant claims isolation; woken reports, once, whether it was woken.
type testClaimant struct{ wakes atomic.Bool }

func newClaimant() *testClaimant { return new(testClaimant) }

func (c *testClaimant) leaseLength() time.Duration { return 10 * time.Second }
func (c *testClaimant) retry()                     { c.wakes.Store(true) }
func (c *testClaimant) woken() bool                { return c.wakes.Swap(false) }

func TestSuspectsRunOneAtATime(t *testing.T) {
	a := newCrashIsolation()
	one, two, three := newClaimant(), newClaimant(), newClaimant()
	want(t, "shared", a.claim(one, isolationShared), true)
	want(t, "shared by two", a.claim(two, isolationShared), true)
	want(t, "a suspect beside them", a.claim(three, isolationTurn), true)
	want(t, "two suspects", a.claim(newClaimant(), isolationTurn), false)
	a.release(three)
	want(t, "alone beside them", a.claim(three, isolationExclusive), false)
	a.release(one)
	want(t, "woken", three.woken(), true)
	want(t, "alone beside one", a.claim(three, isolationExclusive), false)
	want(t, "shared while one waits to be alone", a.claim(one, isolationShared), false)
	a.release(two)
	want(t, "alone", a.claim(three, isolationExclusive), true)
	want(t, "two alone", a.claim(two, isolationExclusive), false)
	one.woken()
	a.release(three)
	want(t, "both woken", one.woken() && two.woken(), true)
	want(t, "shared before the one that waits longer", a.claim(one, isolationShared), false)
	a.forget(two)
	want(t, "woken when that one gives up", one.woken(), true)
	want(t, "shared then", a.claim(one, isolationShared), true)
}

// Two claims to run alone do not wake each other when they are repeated: they would never rest.
func TestClaimsToBeAloneDoNotWakeEachOther(t *testing.T) {
	a := newCrashIsolation()
	running, one, two := newClaimant(), newClaimant(), newClaimant()
	want(t, "alone", a.claim(running, isolationExclusive), true)
	want(t, "one beside it", a.claim(one, isolationExclusive), false)
	want(t, "two beside it", a.claim(two, isolationExclusive), false)
	a.forget(one)
	want(t, "two was woken by one", two.woken(), false)
	want(t, "one again", a.claim(one, isolationExclusive), false)
	a.release(running)
	want(t, "both woken at the end", one.woken() && two.woken(), true)
}

// Partitions do not wait for an event that runs longer than a dead worker's lease. Waiting ones are
// woken.
func TestNoPartitionWaitsForWhatHangs(t *testing.T) {
	for _, hangs := range []isolation{isolationShared, isolationTurn, isolationExclusive} {
		synctest.Test(t, func(t *testing.T) {
			a := newCrashIsolation()
			hanging, next, third := newClaimant(), newClaimant(), newClaimant()
			want(t, "what hangs", a.claim(hanging, hangs), true)
			time.Sleep(time.Second)
			want(t, "beside it", a.claim(next, isolationExclusive), false)
			time.Sleep(8 * time.Second)
			want(t, "woken too early", next.woken(), false)
			time.Sleep(time.Second)
			synctest.Wait()
			want(t, "woken", next.woken(), true)
			want(t, "then", a.claim(next, isolationExclusive), true)
			want(t, "beside the second", a.claim(third, isolationTurn), false)
			a.release(next)
			want(t, "behind it", a.claim(third, isolationTurn), true)
		})
	}
}

// An event that ran alone is acked before waiting events begin: if one of them ends the worker, the
// finished event is not blamed.
func TestWhatRanAloneIsAckedBeforeOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries := []redisconn.Entry{{ID: "1-0", Values: map[string]any{"data": ""}}}
		own, other := NewFed(&Processor{Prefetch: 1, PrefetchBytes: 100}, nil, 0).p, newClaimant()
		own.expiry = time.Hour
		own.buffer.Push(entries)
		if got, err := own.source.Take(1, 0); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		want(t, "alone", own.source.turn.claim(isolationExclusive), true)
		own.source.Ack([]string{"1-0"})
		go func() { _, _ = own.source.Take(1, 0) }()
		synctest.Wait()
		want(t, "before the ack", own.source.turn.of.claim(other, isolationTurn), false)
		own.buffer.TakeAcks(1, "")
		own.buffer.AcksConfirmed()
		synctest.Wait()
		want(t, "then", own.source.turn.of.claim(other, isolationTurn), true)
		own.beginEnd()
	})
}
