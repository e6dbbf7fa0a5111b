package runneltest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// Delayed, cancelled and rescheduled records are reported like those that are sent.
func TestSentDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := runnel.New("shop", nil)
		orders := runnel.NewStream(app, "orders", customer, nil)
		due := time.Now().Add(time.Hour)
		orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
			sent, err := orders.SendAfter(ctx, time.Minute, order{"a", 1}, order{"b", 2}, order{"c", 3})
			if err != nil {
				return err
			}
			if ok, err := orders.Cancel(ctx, sent[1].ID); !ok || err != nil {
				t.Errorf("cancel: %v, %v", ok, err)
			}
			if ok, err := orders.Cancel(ctx, sent[1].ID); ok || err != nil {
				t.Errorf("cancel again: %v, %v", ok, err)
			}
			if ok, err := orders.Reschedule(ctx, sent[2].ID, due); !ok || err != nil {
				t.Errorf("reschedule: %v, %v", ok, err)
			}
			return orders.Send(ctx, order{"d", 4})
		}), nil)
		got := runneltest.Process(t, orders, "p", order{"x", 0})
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		at := map[int]time.Time{}
		for _, o := range runneltest.SentEvents(t, got, orders) {
			at[o.Record.Amount] = o.At
		}
		want := map[int]time.Time{1: time.Now().Add(time.Minute), 3: due, 4: {}}
		for n, w := range want {
			if g, ok := at[n]; !ok || !g.Equal(w) {
				t.Errorf("order %d: due %v, want %v", n, g, w)
			}
		}
		if len(at) != len(want) {
			t.Errorf("sent %v", at)
		}
	})
}

// A scripted event may have been delayed.
func TestEventsThatWereDelayed(t *testing.T) {
	var dues []time.Time
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, _ order) error {
		dues = append(dues, e.Due())
		return nil
	}), nil)
	due := time.UnixMilli(1_700_000_000_123)
	runneltest.Events(t, orders, "p").
		Outgoing(runnel.Outgoing[order]{Record: order{"a", 1}, At: due}).
		Outgoing(runnel.Outgoing[order]{Record: order{"a", 2}}).Run()
	if want := []time.Time{due, {}}; !slices.Equal(dues, want) {
		t.Errorf("due %v, want %v", dues, want)
	}
}
