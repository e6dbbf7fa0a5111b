package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

var endsBegan = time.UnixMilli(1_700_000_000_000)

func endsAt(seconds float64) time.Time {
	return endsBegan.Add(time.Duration(seconds * float64(time.Second)))
}

// closed is what ended in a run, in order: customer, sum and time.
func closed(t *testing.T, a *accounts, opts runnel.ProcessorOptions, end func(ctx context.Context, key string, row account) error, fn runnel.ProcessFunc[order]) (ended *[]string) {
	ended = &[]string{}
	a.table.OnExpire(func(ctx context.Context, key string, row account) error {
		*ended = append(*ended, fmt.Sprintf("%s %d at %v", key, row.Sum, a.table.Rows(ctx).Now().Sub(endsBegan)))
		if end != nil {
			return end(ctx, key, row)
		}
		return nil
	})
	opts.Tables = []runnel.State{a.table}
	if fn == nil {
		fn = runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error { a.add(ctx, o); return nil })
	}
	a.orders.Process("p", fn, &opts)
	return ended
}

func wantEnded(t *testing.T, ended *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*ended, want) {
		t.Errorf("ended %q, want %q", *ended, want)
	}
}

// Rows end in the order of time, before the first event that is not before them, and where no event comes.
func TestRowsEndInOrder(t *testing.T) {
	a := newAccounts(10 * time.Second)
	ended := closed(t, a, runnel.ProcessorOptions{}, nil, nil)
	r := runneltest.Events(t, a.orders, "p").
		Appended(endsAt(0)).Records(order{"ada", 1}, order{"bob", 2}).
		Appended(endsAt(5)).Records(order{"bob", 3}).
		Appended(endsAt(9.999)).Records(order{"cyd", 4}).
		Appended(endsAt(10)).Records(order{"ada", 5}). // a new row
		Quiet(endsAt(15)).
		Appended(endsAt(16)).Records(order{"bob", 6}).
		Quiet(endsAt(19.998)).Quiet(endsAt(25.999)).Run()
	wantEnded(t, ended, "ada 1 at 10s", "bob 5 at 15s", "cyd 4 at 19.999s", "ada 5 at 20s")
	wantRows(t, r, a, map[string]account{"bob": {6, []int{6}}})
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// What the function of an end sets and emits is committed with the end; rows that it sets end, too.
func TestAnEndChangesRows(t *testing.T) {
	a := newAccounts(10 * time.Second)
	ended := closed(t, a, runnel.ProcessorOptions{}, func(ctx context.Context, key string, row account) error {
		rows := a.table.Rows(ctx)
		if _, ok := rows.Get(key); ok {
			t.Errorf("row %s is there", key)
		}
		switch {
		case row.Sum == 1:
			rows.Set(key, account{Sum: 100}) // for another TTL, from its end on
			rows.SetUntil("soon", account{Sum: 7}, rows.Now().Add(time.Millisecond))
			rows.SetUntil("past", account{Sum: 8}, rows.Now().Add(-time.Hour))
		case key == "soon":
			rows.SetUntil("for good", account{Sum: 9}, time.Time{})
		}
		return a.out.Emit(ctx, order{key, row.Sum})
	}, nil)
	r := runneltest.Events(t, a.orders, "p").Appended(endsAt(0)).Records(order{"ada", 1}).Appended(endsAt(60)).Records(order{"bob", 2}).Run()
	wantEnded(t, ended, "ada 1 at 10s", "past 8 at 10.001s", "soon 7 at 10.001s", "ada 100 at 20s")
	wantRows(t, r, a, map[string]account{"bob": {2, []int{2}}, "for good": {Sum: 9}})
	want := []order{{"ada", 1}, {"past", 8}, {"soon", 7}, {"ada", 100}}
	if got := runneltest.Emitted(t, r, a.out); !slices.Equal(got, want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
}

// No row ends within a batch.
func TestABatchEndsBeforeARow(t *testing.T) {
	a := newAccounts(10 * time.Second)
	var batches []int
	ended := closed(t, a, runnel.ProcessorOptions{}, nil, runnel.EachBatch(100, time.Second, func(ctx context.Context, events []*runnel.Event, orders []order) error {
		batches = append(batches, len(events))
		return nil
	}))
	script := runneltest.Events(t, a.orders, "p").
		Appended(endsAt(0)).Records(order{"ada", 1}).
		Appended(endsAt(9.999)).Records(order{"bob", 1}).
		Appended(endsAt(10)).Records(order{"bob", 1}).
		Appended(endsAt(10.5)).Records(order{"cyd", 1}, order{"cyd", 1})
	runneltest.SetRows(script, a.table, map[string]account{"zoe": {Sum: 7}}).Run()
	wantEnded(t, ended, "zoe 7 at 10s")
	if want := []int{2, 3}; !slices.Equal(batches, want) {
		t.Errorf("batches of %v, want %v", batches, want)
	}
}

// A batch that a middleware splits has one time all the same, that of its last event.
func TestABatchThatIsSplitHasOneTime(t *testing.T) {
	a := newAccounts(10 * time.Second)
	split := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			for i := range b.Events {
				one := *b
				one.Events = b.Events[i : i+1]
				if err := next(ctx, &one); err != nil {
					return err
				}
			}
			return nil
		}
	}
	ended := closed(t, a, runnel.ProcessorOptions{Middleware: []runnel.Middleware{split}}, nil,
		runnel.EachBatch(100, time.Second, func(ctx context.Context, _ []*runnel.Event, orders []order) error {
			a.add(ctx, orders[0])
			return nil
		}))
	runneltest.Events(t, a.orders, "p").
		Appended(endsAt(0)).Records(order{"ada", 1}).
		Appended(endsAt(11)).Records(order{"bob", 1}).Quiet(endsAt(30)).Run()
	wantEnded(t, ended, "ada 1 at 21s", "bob 1 at 21s")
}

// A partition that is released leaves the rows that have not ended to the next owner.
func TestNoRowEndsBehindARelease(t *testing.T) {
	a := newAccounts(10 * time.Second)
	ended := closed(t, a, runnel.ProcessorOptions{}, nil, runnel.EachBatch(1, 0, func(ctx context.Context, _ []*runnel.Event, orders []order) error {
		a.add(ctx, orders[0])
		return nil
	}))
	r := runneltest.Events(t, a.orders, "p").Appended(endsAt(0)).Records(order{"ada", 1}).Appended(endsAt(60)).Records(order{"bob", 1}).Release().Run()
	wantEnded(t, ended)
	wantRows(t, r, a, map[string]account{"ada": {1, []int{1}}})
	if r.Err != nil || len(r.Acked) != 1 {
		t.Errorf("acked %v, %v", r.Acked, r.Err)
	}
}

// What an attempt that fails changes is undone, whatever the policy.
func TestEndsThatFail(t *testing.T) {
	bad := errors.New("bad")
	for name, tt := range map[string]struct {
		opts  runnel.ProcessorOptions
		err   error
		ended []string
		rows  map[string]account
		check func(r *runneltest.Result) bool
	}{
		"halt": {runnel.ProcessorOptions{}, bad, []string{"ada 1 at 10s"}, map[string]account{"ada": {1, []int{1}}, "bob": {1, []int{1}}},
			func(r *runneltest.Result) bool { return errors.Is(r.Err, bad) && len(r.Acked) == 2 }},
		"quarantine": {runnel.ProcessorOptions{OnError: runnel.Quarantine}, bad, []string{"ada 1 at 10s"}, map[string]account{"ada": {1, []int{1}}, "bob": {1, []int{1}}},
			func(r *runneltest.Result) bool { return errors.Is(r.Quarantined, bad) && len(r.Acked) == 2 }},
		"ignore": {runnel.ProcessorOptions{OnError: runnel.Ignore}, bad, []string{"ada 1 at 10s", "bob 1 at 10.001s"}, map[string]account{"cyd": {1, []int{1}}},
			func(r *runneltest.Result) bool { return r.Ignored == 1 && errors.Is(r.IgnoredErrs[0], bad) }},
		"drop": {runnel.ProcessorOptions{}, runnel.Drop(bad), []string{"ada 1 at 10s", "bob 1 at 10.001s"}, map[string]account{"cyd": {1, []int{1}}},
			func(r *runneltest.Result) bool { return r.Ignored == 1 }},
		"dead letter": {runnel.ProcessorOptions{}, runnel.DeadLetter(bad), []string{"ada 1 at 10s", "bob 1 at 10.001s"}, map[string]account{"ada": {1, []int{1}}, "cyd": {1, []int{1}}}, nil},
		"retry": {runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3}}, bad, []string{"ada 1 at 10s", "ada 1 at 10s", "ada 1 at 10s", "bob 1 at 10.001s"},
			map[string]account{"ada": {1, []int{1}}, "cyd": {1, []int{1}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccounts(10 * time.Second)
			ended := closed(t, a, tt.opts, func(ctx context.Context, key string, row account) error {
				if key != "ada" {
					return nil
				}
				row.Seen[0] = 99 // in place
				a.table.Rows(ctx).Delete("bob")
				a.table.Rows(ctx).Set("new", row)
				if err := a.out.Emit(ctx, order{key, 0}); err != nil {
					t.Error(err)
				}
				return tt.err
			}, nil)
			r := runneltest.Events(t, a.orders, "p").Appended(endsAt(0)).Records(order{"ada", 1}).
				Appended(endsAt(0.001)).Records(order{"bob", 1}).Appended(endsAt(11)).Records(order{"cyd", 1}).Run()
			wantEnded(t, ended, tt.ended...)
			wantRows(t, r, a, tt.rows)
			if n := len(runneltest.Emitted(t, r, a.out)); n > 0 || tt.check != nil && !tt.check(r) {
				t.Errorf("%d emitted, %+v", n, r)
			}
		})
	}
}

func TestBadUsesOfEnds(t *testing.T) {
	a := newAccounts(0)
	mustPanic := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	mustPanic("nil", func() { a.table.OnExpire(nil) })
	var failed error
	a.process(runnel.ProcessorOptions{OnError: runnel.Ignore}, func(ctx context.Context, o order) error {
		defer func() { failed = fmt.Errorf("%v", recover()) }()
		a.table.Rows(ctx).SetUntil(o.Customer, account{}, time.Now())
		return nil
	})
	runneltest.Process(t, a.orders, "p", order{"ada", 1})
	if failed == nil || failed.Error() == "<nil>" {
		t.Error("a row was set until a time in a table whose rows do not end")
	}
	a.table.OnExpire(func(context.Context, string, account) error { return nil })
	mustPanic("twice", func() { a.table.OnExpire(func(context.Context, string, account) error { return nil }) })
}

// An end that is too far for a number of ms, or for a score in Redis, is far all the same.
func TestRowEndsFarAway(t *testing.T) {
	for name, until := range map[string]time.Time{"time": time.Unix(1<<63-62135596801, 999999999), "ms": time.UnixMilli(1<<63 - 1)} {
		a := newAccounts(time.Second)
		ended := closed(t, a, runnel.ProcessorOptions{}, nil, runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error {
			a.table.Rows(ctx).SetUntil(o.Customer, account{Sum: 1}, until)
			return nil
		}))
		r := runneltest.Events(t, a.orders, "p").Appended(endsAt(0)).Records(order{"ada", 1}).Quiet(endsAt(60)).Run()
		wantEnded(t, ended)
		if rows := runneltest.Rows(t, r, a.table); len(rows) != 1 {
			t.Errorf("%s: rows %v", name, rows)
		}
	}
}
