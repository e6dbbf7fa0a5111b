// An error without a Retry halts the worker, quarantines the partition or is ignored, as the
// Policy says; only failed events stay unacked.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// failAt fails at the record 2.
var failAt = runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error {
	if i.N == 2 {
		return errBad
	}
	return nil
})

func TestPolicies(t *testing.T) {
	tests := []struct {
		policy           runnel.Policy
		acked            []string
		err, quarantined error
		ignored          int
	}{
		{policy: 0, acked: []string{"1-0"}, err: errBad}, // the default
		{policy: runnel.Halt, acked: []string{"1-0"}, err: errBad},
		{policy: runnel.Quarantine, acked: []string{"1-0"}, quarantined: errBad},
		{policy: runnel.Ignore, acked: []string{"1-0", "2-0", "3-0"}, ignored: 1},
	}
	for _, tt := range tests {
		t.Run(tt.policy.String(), func(t *testing.T) {
			got := runneltest.Process(t, declareItems(failAt, &runnel.ProcessorOptions{OnError: tt.policy}), "p", items(1, 2, 3)...)
			wantAcked(t, got, tt.acked...)
			wantErr(t, got.Err, tt.err)
			wantErr(t, got.Quarantined, tt.quarantined)
			if got.Ignored != tt.ignored {
				t.Errorf("ignored %d", got.Ignored)
			}
			for _, err := range append(got.IgnoredErrs, got.Err, got.Quarantined) {
				if err != nil && !strings.Contains(err.Error(), "event 0/2-0") {
					t.Errorf("%v does not name the event", err)
				}
			}
		})
	}
}

func TestAfterAnIgnoredErrorTheFunctionIsCalledAnew(t *testing.T) {
	calls := 0
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		calls++
		for i := range ev.Records() {
			if i.N == 2 {
				return errBad
			}
		}
		return nil
	}, &runnel.ProcessorOptions{OnError: runnel.Ignore})
	runneltest.Process(t, s, "p", items(1, 2, 3)...)
	if calls != 2 {
		t.Errorf("called %d times", calls)
	}
}

func TestAnErrorBeforeTheFirstEventIsNoEventsFault(t *testing.T) {
	fail := func(context.Context, *runnel.Events[item]) error { return errBad }
	got := runneltest.Process(t, declareItems(fail, nil), "p", items(1)...)
	wantErr(t, got.Err, errBad)
	if got.Taken != nil || strings.Contains(got.Err.Error(), "event") {
		t.Errorf("an event is blamed: %v, %v", got.Taken, got.Err)
	}
	got = runneltest.Process(t, declareItems(fail, &runnel.ProcessorOptions{OnError: runnel.Quarantine}), "p", items(1)...)
	wantErr(t, got.Quarantined, errBad)
	if got.Taken != nil || got.Err != nil {
		t.Errorf("%+v", got)
	}
}

func TestIgnoreBeforeTheFirstEventCallsAgainAfterOneToThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
			at = append(at, time.Since(began).Round(time.Second)/time.Second)
			if len(at) < 9 {
				return errBad
			}
			for range ev.Records() {
			}
			return nil
		}, &runnel.ProcessorOptions{OnError: runnel.Ignore})
		got := runneltest.Events(t, s, "p").Records(items(1)...).Wait(time.Hour).Release().Run()
		wantAcked(t, got, "1-0")
		if want := []time.Duration{0, 1, 3, 7, 15, 31, 61, 91, 121}; !slices.Equal(at, want) {
			t.Errorf("called after %d s, want %d", at, want)
		}
		if got.Ignored != 0 || len(got.IgnoredErrs) != 8 {
			t.Errorf("%d events, %d errors ignored", got.Ignored, len(got.IgnoredErrs))
		}
	})
}

func TestIgnoreBeforeTheFirstEventEndsWithTheOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := declareItems(func(context.Context, *runnel.Events[item]) error { return errBad }, &runnel.ProcessorOptions{OnError: runnel.Ignore})
		began := time.Now()
		got := runneltest.Events(t, s, "p").Wait(80 * time.Second).Release().Run()
		if d := time.Since(began); d != 80*time.Second || got.Err != nil {
			t.Errorf("ended after %v with %v", d, got.Err)
		}
	})
}

// failing returns a function over batches that blames some of the events, by
// number.
func failing(numbers ...int) runnel.ProcessFunc[item] {
	return runnel.EachBatch(10, 0, func(_ context.Context, es []*runnel.Event, is []item) error {
		var failed []*runnel.Event
		for n, i := range is {
			if slices.Contains(numbers, i.N) {
				failed = append(failed, es[n])
			}
		}
		return runnel.FailedEvents(errBad, failed...)
	})
}

func TestOnlyFailedEventsStayUnacked(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine} {
		got := runneltest.Process(t, declareItems(failing(2, 3), &runnel.ProcessorOptions{OnError: policy}), "p", items(1, 2, 3, 4)...)
		wantAcked(t, got, "1-0", "4-0")
		wantErr(t, errors.Join(got.Err, got.Quarantined), errBad)
	}
	got := runneltest.Process(t, declareItems(failing(2, 3), &runnel.ProcessorOptions{OnError: runnel.Ignore}), "p", items(1, 2, 3, 4)...)
	wantAcked(t, got, "1-0", "2-0", "3-0", "4-0")
	if got.Ignored != 2 {
		t.Errorf("ignored %d, want the two that failed", got.Ignored)
	}
}

func TestWithoutFailedEventsTheWholeBatchFailed(t *testing.T) {
	s := declareItems(runnel.EachBatch(3, 0, func(_ context.Context, _ []*runnel.Event, is []item) error {
		if is[0].N == 4 {
			return errBad
		}
		return nil
	}), nil)
	got := runneltest.Process(t, s, "p", items(1, 2, 3, 4, 5, 6)...)
	wantAcked(t, got, "1-0", "2-0", "3-0")
	wantErr(t, got.Err, errBad)
}

func TestFailedEventsOfOtherBatchesAreIgnored(t *testing.T) {
	got := runneltest.Process(t, declareItems(failing(), nil), "p", items(1, 2)...) // none of them
	wantAcked(t, got, "1-0", "2-0")
	wantErr(t, got.Err, nil)
	if runnel.FailedEvents(nil, &runnel.Event{}) != nil {
		t.Error("nil failed")
	}
	b := &runnel.Batch{Events: []*runnel.Event{{ID: "1-0"}, {ID: "2-0"}}}
	wrapped := fmt.Errorf("more: %w", runnel.FailedEvents(errBad, b.Events[1], &runnel.Event{ID: "1-0"}))
	if f := b.Failed(wrapped); len(f) != 1 || f[0] != b.Events[1] {
		t.Errorf("failed %v", f)
	}
	if b.Failed(nil) != nil || len(b.Failed(errBad)) != 2 || !errors.Is(wrapped, errBad) {
		t.Error("Failed of nil or of a plain error")
	}
}

func TestWhatCannotBeDecodedReachesMiddlewareAndPolicyButNoLoop(t *testing.T) {
	broken := map[string]string{"data": "\xc1"}
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine, runnel.Ignore} {
		var looped []int
		var seen []error
		middleware := func(next runnel.Handler) runnel.Handler {
			return func(ctx context.Context, b *runnel.Batch) error {
				err := next(ctx, b)
				seen = append(seen, err)
				return err
			}
		}
		s := declareItems(runnel.Each(func(_ context.Context, _ *runnel.Event, i item) error { looped = append(looped, i.N); return nil }),
			&runnel.ProcessorOptions{OnError: policy, Middleware: []runnel.Middleware{middleware}})
		got := runneltest.Events(t, s, "p").Partition(3).Records(items(1)...).Raw(broken).Records(items(3)...).Run()
		err := errors.Join(append(got.IgnoredErrs, got.Err, got.Quarantined)...)
		var bad *runnel.DecodeError
		if !errors.As(err, &bad) || bad.Event.ID != "2-0" || len(seen) < 2 || !errors.As(seen[1], &bad) {
			t.Errorf("%v: %v; middleware saw %v", policy, err, seen)
		}
		if !strings.Contains(err.Error(), "stream items: decode event 3/2-0 as msgpack") || policy == runnel.Halt && strings.Count(err.Error(), "3/2-0") != 1 {
			t.Errorf("%v does not say where, and once", err)
		}
		want := []int{1}
		if policy == runnel.Ignore {
			want = []int{1, 3}
		}
		if !slices.Equal(looped, want) {
			t.Errorf("%v: the loop saw %v, want %v", policy, looped, want)
		}
	}
}

func TestAnUndecodableRecordEndsTheBatchBeforeItAndGoesAlone(t *testing.T) {
	var batches []string
	sizes := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			var ids []string
			for _, e := range b.Events {
				ids = append(ids, e.ID)
			}
			batches = append(batches, strings.Join(ids, ","))
			return next(ctx, b)
		}
	}
	s := declareItems(runnel.EachBatch(10, 0, func(context.Context, []*runnel.Event, []item) error { return nil }),
		&runnel.ProcessorOptions{OnError: runnel.Ignore, Middleware: []runnel.Middleware{sizes}})
	broken := map[string]string{"data": "\xc1"}
	got := runneltest.Events(t, s, "p").Records(items(1, 2)...).Raw(broken).Raw(broken).Records(items(5, 6)...).Run()
	wantAcked(t, got, "1-0", "2-0", "3-0", "4-0", "5-0", "6-0")
	if s := strings.Join(batches, " "); s != "1-0,2-0 3-0 4-0 5-0,6-0" {
		t.Errorf("batches %s", s)
	}
	if got.Ignored != 2 {
		t.Errorf("ignored %d", got.Ignored)
	}
}

// Raw loops decode nothing, so nothing can fail to be decoded.
func TestRawLoopsSeeWhatCannotBeDecoded(t *testing.T) {
	n := 0
	s := declareItems(func(_ context.Context, ev *runnel.Events[item]) error {
		for range ev.Raw() {
			n++
		}
		return nil
	}, nil)
	got := runneltest.Events(t, s, "p").Raw(map[string]string{"data": "\xc1"}).Raw(map[string]string{"x": "y"}).Run()
	wantAcked(t, got, "1-0", "2-0")
	if n != 2 {
		t.Errorf("saw %d", n)
	}
}

// A batch that was split is no reason to go on when the ownership is ending.
func TestNothingIsDeliveredOnceTheOwnershipEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*runneltest.Script[item]) *runneltest.Script[item]
		want []int
	}{
		"release": {(*runneltest.Script[item]).Release, []int{1}},
		"loss":    {(*runneltest.Script[item]).Lose, nil}, // it comes before the first call: not even that is made
	} {
		var seen []int
		s := declareItems(runnel.EachBatch(10, 0, func(_ context.Context, _ []*runnel.Event, is []item) error {
			seen = append(seen, is[0].N)
			return nil
		}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
		script := runneltest.Events(t, s, "p").Records(items(1)...).Raw(map[string]string{"data": "\xc1"}).Records(items(3)...)
		got := tt.end(script).Run()
		if !slices.Equal(seen, tt.want) || got.Ignored != 0 || got.Err != nil {
			t.Errorf("%s: saw %v, %+v", name, seen, got)
		}
	}
}

// An event that fails after its context has ended is left to the next owner: no policy drops it.
func TestAnErrorAfterTheContextHasEndedIsTheNextOwners(t *testing.T) {
	for _, policy := range []runnel.Policy{runnel.Halt, runnel.Quarantine, runnel.Ignore} {
		synctest.Test(t, func(t *testing.T) {
			s := declareItems(runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error {
				<-ctx.Done()
				return errBad
			}), &runnel.ProcessorOptions{OnError: policy})
			got := runneltest.Events(t, s, "p").Records(items(1)...).Release().Run()
			wantAcked(t, got)
			if got.Err != nil || got.Quarantined != nil || got.Ignored != 0 {
				t.Errorf("%v: %+v", policy, got)
			}
		})
	}
}

func TestTheErrorOfAHaltingProcessorSaysWhere(t *testing.T) {
	var n notes
	fn := runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
		if i.N == 2 {
			n.add(e.ID)
			return errBad
		}
		return nil
	})
	cluster(t, 1, fn, nil, func(c *runneltest.Cluster, send func(...int)) {
		a := c.Start("a")
		send(1, 2, 3)
		<-a.Done()
		err := a.Err()
		if !errors.Is(err, errBad) {
			t.Fatalf("Run: %v", err)
		}
		for _, part := range []string{"app contract", "stream items", "partition 0", "processor p", "event 0/" + n.all()[0]} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
		if left := undone(c, "__strm:contract.items.0"); len(left) != 2 || left[0] != n.all()[0] {
			t.Errorf("events %q are left to do, want that which failed and the next one", left)
		}
	})
}

// undone returns the IDs of the events that the next owner of a partition begins with.
func undone(c *runneltest.Cluster, partition string) (ids []string) {
	after := "-"
	for _, g := range c.Redis().XInfoGroups(c.Context(), partition).Val() {
		if after = "(" + g.LastDeliveredID; g.Pending > 0 {
			after = c.Redis().XPending(c.Context(), partition, g.Name).Val().Lower
		}
	}
	for _, e := range c.Redis().XRange(c.Context(), partition, after, "+").Val() {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestQuarantineStopsOnePartitionAndKeepsIt(t *testing.T) {
	t.Parallel()
	var n notes
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		n.add(fmt.Sprint(runneltest.WorkerOf(ctx).Name(), " ", e.Partition, " ", i.N))
		if i.N == 1 {
			return errBad
		}
		return nil
	})
	cluster(t, 2, fn, &runnel.ProcessorOptions{OnError: runnel.Quarantine, Lease: time.Second}, func(c *runneltest.Cluster, send func(...int)) {
		a := ready(c, "a")
		send(1)
		c.Sleep(time.Second)
		for i := 2; i < 30; i++ {
			send(i)
		}
		c.Sleep(time.Minute)
		bad := n.all()[0] // "a <partition> 1"
		for _, line := range n.all()[1:] {
			if strings.HasPrefix(line, bad[:3]) {
				t.Errorf("the quarantined partition goes on: %s", line)
			}
		}
		if len(n.all()) < 10 {
			t.Errorf("the other partition stopped too: %q", n.all())
		}
		if err := a.App().Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		if err := a.Stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		ready(c, "b")
		c.Sleep(time.Minute)
		if n.has("b" + bad[1:]) {
			t.Errorf("begun again by the next owner: %q", n.all())
		}
		resume(t, c, int(bad[2]-'0'), false)
		c.Sleep(100 * time.Millisecond)
		if !n.has("b" + bad[1:]) {
			t.Errorf("not begun again after the quarantine: %q", n.all())
		}
	})
}
