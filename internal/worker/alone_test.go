package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// A suspect waits for its turn to be alone when the lease of its partition ends.
// Other partitions of the worker do not wait for it any more.
func TestEndOfATenureEndsItsTurn(t *testing.T) {
	var own *tenure
	p := &Processor{Prefetch: 1, PrefetchBytes: 1}
	p.Consume = func(context.Context, Source) error {
		want(t, "alone beside another one", own.claim(holdsAlone), false)
		own.beginEnd()
		return nil
	}
	own = NewFed(p, nil, 0).tenure
	other := NewFed(p, nil, 0).tenure
	other.alone = own.alone
	own.expiry, other.expiry = time.Minute, time.Minute
	want(t, "another one that shares", other.claim(holdsShare), true)
	x := &incarnation{executor: &executor{p: p}}
	x.consume(own, nil)
	other.letGo()
	want(t, "it shares again", other.claim(holdsShare), true)
}

// A testClaimant claims of an alone; woken tells, once, that it was woken.
type testClaimant struct{ wakes atomic.Bool }

func newClaimant() *testClaimant { return new(testClaimant) }

func (c *testClaimant) leaseLength() time.Duration { return 10 * time.Second }
func (c *testClaimant) nudge()                     { c.wakes.Store(true) }
func (c *testClaimant) woken() bool                { return c.wakes.Swap(false) }

func TestSuspectsRunOneAtATime(t *testing.T) {
	a := newAlone()
	one, two, three := newClaimant(), newClaimant(), newClaimant()
	want(t, "shared", a.claim(one, holdsShare), true)
	want(t, "shared by two", a.claim(two, holdsShare), true)
	want(t, "a suspect beside them", a.claim(three, holdsTurn), true)
	want(t, "two suspects", a.claim(newClaimant(), holdsTurn), false)
	a.release(three)
	want(t, "alone beside them", a.claim(three, holdsAlone), false)
	a.release(one)
	want(t, "woken", three.woken(), true)
	want(t, "alone beside one", a.claim(three, holdsAlone), false)
	want(t, "shared while one waits to be alone", a.claim(one, holdsShare), false)
	a.release(two)
	want(t, "alone", a.claim(three, holdsAlone), true)
	want(t, "two alone", a.claim(two, holdsAlone), false)
	one.woken()
	a.release(three)
	want(t, "both woken", one.woken() && two.woken(), true)
	want(t, "shared before the one that waits longer", a.claim(one, holdsShare), false)
	a.forget(two)
	want(t, "woken when that one gives up", one.woken(), true)
	want(t, "shared then", a.claim(one, holdsShare), true)
}

// What runs for longer than a partition stays with a dead worker is not waited for,
// and whoever waited is told.
func TestNobodyWaitsForWhatHangs(t *testing.T) {
	for _, hangs := range []hold{holdsShare, holdsTurn, holdsAlone} {
		synctest.Test(t, func(t *testing.T) {
			a := newAlone()
			hanging, next, third := newClaimant(), newClaimant(), newClaimant()
			want(t, "what hangs", a.claim(hanging, hangs), true)
			time.Sleep(time.Second)
			want(t, "beside it", a.claim(next, holdsAlone), false)
			time.Sleep(8 * time.Second)
			want(t, "woken too early", next.woken(), false)
			time.Sleep(time.Second)
			synctest.Wait()
			want(t, "woken", next.woken(), true)
			want(t, "then", a.claim(next, holdsAlone), true)
			want(t, "beside the second", a.claim(third, holdsTurn), false)
			a.release(next)
			want(t, "behind it", a.claim(third, holdsTurn), true)
		})
	}
}

// What ran alone is acked before anything else begins that waited for it: should that end
// the worker, the event that is done is not blamed.
func TestWhatRanAloneIsAckedBeforeOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries := []redisconn.Entry{{ID: "1-0", Values: map[string]any{"data": ""}}}
		own, other := NewFed(&Processor{Prefetch: 1, PrefetchBytes: 100}, nil, 0).tenure, newClaimant()
		own.expiry = time.Hour
		own.buffer.Push(entries)
		if got, err := own.Take(1, 0); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		want(t, "alone", own.claim(holdsAlone), true)
		own.Ack([]string{"1-0"}, false)
		go func() { _, _ = own.Take(1, 0) }()
		synctest.Wait()
		want(t, "before the ack", own.alone.claim(other, holdsTurn), false)
		own.buffer.TakeAcks(1)
		own.buffer.AcksConfirmed()
		synctest.Wait()
		want(t, "then", own.alone.claim(other, holdsTurn), true)
		own.beginEnd()
	})
}
