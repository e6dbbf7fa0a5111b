package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

func TestAnOperatorLooksAfterEventsThatFailed(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		ctx := t.Context()
		stream(t, c, "orders", "printer")
		p := c.Partition("orders", "printer", 2)
		entries := pending(t, c, p, 6)
		for i, e := range entries[:4] {
			must(t, c.DeadLetter(ctx, p, me, store.DeadLetter{Entry: e, Key: fmt.Sprint("k", i), Attempts: 3, Error: "no ink"}))
		}
		must(t, c.Park(ctx, p, me, 0, []store.Parking{{Entry: entries[4], State: store.RetryState{Lane: "kx", Key: "x", Attempts: 1, At: time.Now().Add(time.Hour).UnixMilli()}}}))
		must(t, c.Quarantine(ctx, p, me, store.Quarantine{Reason: "no paper", Event: "6-0", Worker: "w1", At: 1}))

		s, err := a.Status(ctx)
		must(t, err)
		want := ProcessorStatus{Stream: "orders", Processor: "printer", Partitions: 4, Owned: 1, Quarantined: 1, Lag: 1, Oldest: s.Processors[0].Oldest, Parked: 1, Dead: 4}
		if len(s.Processors) != 1 || s.Processors[0] != want || len(s.Findings) < 2 || !strings.Contains(strings.Join(s.Findings, "\n"), "quarantined since") {
			t.Errorf("status %+v, want %+v", s, want)
		}
		q, err := a.Quarantines(ctx)
		must(t, err)
		if len(q) != 1 || q[0].Event != "2/6-0" || q[0].Reason != "no paper" || q[0].Partition != 2 {
			t.Errorf("quarantines %+v", q)
		}
		done, err := a.Release(ctx, "orders", "printer", 2, true)
		must(t, err)
		if done.Event != "2/6-0" || !done.Skipped {
			t.Errorf("released %+v", done)
		}
		_, err = a.Release(ctx, "orders", "printer", 2, true)
		if no := (*NotQuarantinedError)(nil); !errors.As(err, &no) {
			t.Errorf("a second release: %v", err)
		}
		dropsRetriesAndReplays(t, a)
		dropsAndRetriesParked(t, a)
	})
}

func dropsRetriesAndReplays(t *testing.T, a *Client) {
	ctx := t.Context()
	dead := a.DeadLetters("orders", "printer")
	letters, err := dead.List(ctx, nil)
	must(t, err)
	retried, err := dead.Retry(ctx, letters[:1])
	must(t, err)
	replayed, err := dead.Replay(ctx, letters[1:2], nil)
	must(t, err)
	dropped, err := dead.Drop(ctx, letters[2:3])
	must(t, err)
	left, err := dead.List(ctx, &Filter{})
	must(t, err)
	newest, err := dead.Newest(ctx)
	must(t, err)
	if len(retried) != 1 || len(dropped) != 1 || len(left) != 1 || left[0].Event != "2/4-0" || newest.ID != left[0].ID {
		t.Errorf("retried %v, dropped %v, left %v, the newest is %v", retried, dropped, left, newest)
	}
	if len(replayed) != 1 || replayed[0].ToStream != "orders" || replayed[0].ToPartition != 2 || replayed[0].ToEvent == "" {
		t.Errorf("replayed %+v", replayed)
	}
	if again, err := dead.Retry(ctx, letters[:3]); len(again) != 0 || err != nil {
		t.Errorf("removed letters were retried: %v, %v", again, err)
	}
}

func dropsAndRetriesParked(t *testing.T, a *Client) {
	ctx := t.Context()
	parked := a.Parked("orders", "printer")
	events, err := parked.List(ctx, nil)
	must(t, err)
	due, err := parked.Retry(ctx, events)
	must(t, err)
	if len(events) != 2 || len(due) != 1 || due[0].Event != "2/5-0" { // the other one is due already
		t.Errorf("parked %+v, made due %+v", events, due)
	}
	gone, err := parked.Drop(ctx, events)
	must(t, err)
	if events, err = parked.List(ctx, nil); len(gone) != 2 || len(events) != 0 || err != nil {
		t.Errorf("dropped %v, left %v: %v", gone, events, err)
	}
}

func TestDelayedEventsAreCancelledAndFired(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		ctx := t.Context()
		stream(t, c, "orders", "printer")
		for n := range 3 {
			for _, done := range c.Append(ctx, []store.Append{{Stream: "orders", Partition: n, Records: [][]string{{"data", strings.Repeat("x", 100)}}, Due: []store.Due{{After: time.Duration(n+1) * time.Hour}}}}) {
				must(t, done.Err)
			}
		}
		delayed := a.Delayed("orders")
		events, err := delayed.List(ctx, &DelayedFilter{MaxBytes: 150})
		must(t, err)
		var held []bool
		for _, e := range events {
			held = append(held, e.Fields != nil)
		}
		if want := []bool{true, false, false}; !slices.Equal(held, want) {
			t.Errorf("fields %v, want %v: %+v", held, want, events)
		}
		first, err := delayed.List(ctx, &DelayedFilter{Limit: 1})
		must(t, err)
		if len(first) != 1 || first[0].ID != events[0].ID {
			t.Errorf("the first is %+v", first)
		}
		cancelled, err := delayed.Cancel(ctx, events[0].ID)
		must(t, err)
		fired, err := delayed.Fire(ctx, events[0].ID, events[1].ID)
		must(t, err)
		if !slices.Equal(cancelled, []string{events[0].ID}) || !slices.Equal(fired, []string{events[1].ID}) {
			t.Errorf("cancelled %v, fired %v", cancelled, fired)
		}
		if _, err := delayed.Cancel(ctx, "9/1"); err == nil {
			t.Error("an event of a missing partition was cancelled")
		}
	})
}

// The error for a mistyped name lists the existing names.
func TestNamesThatAreNotThere(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		ctx := t.Context()
		stream(t, c, "orders", "printer")
		for _, tt := range []struct {
			err  error
			want string
		}{
			{second(a.Stream(ctx, "order")), `has no stream "order"; it has orders`},
			{second(a.DeadLetters("orders", "print").List(ctx, nil)), `stream orders has no processor "print"; it has printer`},
			{second(a.Parked("orders", "print").List(ctx, nil)), `no processor "print"`},
			{second(a.Parked("orders", "printer").List(ctx, &Filter{Partitions: []int{4}})), "no partition 4: it has 4"},
			{second(a.Delayed("order").List(ctx, nil)), `no stream "order"`},
			{second(a.Positions("orders", "print").List(ctx)), `no processor "print"`},
			{second(a.Workers().Drain(ctx, WorkerOf{Name: "w1"})), `no worker "w1": none runs`},
			{second(a.Workers().Pin(ctx, WorkerOf{Name: "w1", Stream: "orders", Processor: "printer"})), "no partitions are named"},
			{second(a.RemoveGroup(ctx, "orders", "x", nil)), `no processor "x"`},
			{a.CheckScope(ctx, PartitionScope("orders", "printer", 4)), "partitions 0 to 3, not 4"},
			{a.CheckScope(ctx, ProcessorScope("orders", "print")), `no processor "print"`},
		} {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("%v, want %s", tt.err, tt.want)
			}
		}
		streams, err := a.Streams(ctx)
		must(t, err)
		if len(streams) != 1 || streams[0].Name != "orders" || streams[0].Partitions != 4 || !slices.Equal(streams[0].Processors, []string{"printer"}) {
			t.Errorf("streams %+v", streams)
		}
		workers, err := a.Workers().List(ctx)
		if len(workers) != 0 || err != nil {
			t.Errorf("workers %+v, %v", workers, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A dry run reports the same as the removal after it.
func TestADryRunRemovesNothing(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		ctx := t.Context()
		stream(t, c, "orders", "printer", "mailer")
		p := c.Partition("orders", "printer", 1)
		entries := pending(t, c, p, 3)
		must(t, c.DeadLetter(ctx, p, me, store.DeadLetter{Entry: entries[0]}))
		must(t, c.Unlock(ctx, p, me))
		must(t, a.Pause(ctx, ProcessorScope("orders", "printer"), nil))
		would, err := a.RemoveProcessor(ctx, "orders", "printer", &RemoveOptions{DryRun: true, Dead: true})
		must(t, err)
		did, err := a.RemoveProcessor(ctx, "orders", "printer", &RemoveOptions{Dead: true})
		must(t, err)
		if would.Rules = did.Rules; would != did || did.Dead != 1 || did.Lag != 2 || did.Rules != 1 {
			t.Errorf("removed %+v, the dry run %+v", did, would)
		}
		gone, err := a.RemoveStream(ctx, "orders", &RemoveOptions{DryRun: true})
		must(t, err)
		if gone.Entries != 3 || !slices.Equal(gone.Processors, []string{"mailer"}) {
			t.Errorf("the dry run removes %+v", gone)
		}
		if _, err := a.Stream(ctx, "orders"); err != nil {
			t.Errorf("a dry run removed it: %v", err)
		}
		_, err = a.RemoveStream(ctx, "orders", nil)
		must(t, err)
		if _, err := a.Stream(ctx, "orders"); err == nil {
			t.Error("the stream is still there")
		}
	})
}

// A drain of one processor works even if another processor cannot be read.
func TestADrainOfOneProcessorLooksAtNoOther(t *testing.T) {
	both(t, func(t *testing.T, a *Client, c *store.Client) {
		stream(t, c, "orders", "printer", "broken")
		must(t, c.Redis().LPush(t.Context(), c.Keys().Membership("orders", "broken"), "x").Err())
		_, err := a.Workers().Drain(t.Context(), WorkerOf{"w1", "orders", "printer"})
		if err == nil || err.Error() != `no worker "w1": none runs` {
			t.Errorf("got %v", err)
		}
	})
}
