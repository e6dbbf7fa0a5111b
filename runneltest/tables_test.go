package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// account is a row, which refers to a list.
type account struct {
	Sum  int
	Seen []int
}

// accounts declares a table of accounts, and a stream of what is emitted.
type accounts struct {
	orders, out *runnel.Stream[order]
	table       *runnel.Table[account]
}

func newAccounts(ttl time.Duration) *accounts {
	app := runnel.New("shop", nil)
	a := &accounts{
		orders: runnel.NewStream(app, "orders", customer, nil),
		out:    runnel.NewStream(app, "out", customer, nil),
	}
	a.table = runnel.NewTable[account](a.orders, "accounts", &runnel.TableOptions{TTL: ttl})
	return a
}

func (a *accounts) process(opts runnel.ProcessorOptions, fn func(ctx context.Context, o order) error) {
	opts.Tables = []runnel.State{a.table}
	a.orders.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, o order) error { return fn(ctx, o) }), &opts)
}

// add adds an order to its account.
func (a *accounts) add(ctx context.Context, o order) account {
	return a.table.Rows(ctx).Update(o.Customer, func(row account) account {
		return account{row.Sum + o.Amount, append(slices.Clone(row.Seen), o.Amount)}
	})
}

func wantRows(t *testing.T, r *runneltest.Result, a *accounts, want map[string]account) {
	t.Helper()
	if got := runneltest.Rows(t, r, a.table); !reflect.DeepEqual(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

func TestRowsBeforeAndAfterARun(t *testing.T) {
	a := newAccounts(0)
	a.process(runnel.ProcessorOptions{OnError: runnel.Ignore}, func(ctx context.Context, o order) error {
		a.add(ctx, o)
		switch o.Amount {
		case -1:
			return errRefund
		case 0:
			a.table.Rows(ctx).Delete(o.Customer)
		}
		return nil
	})
	script := runneltest.Events(t, a.orders, "p").Records(order{"ada", 1}, order{"ada", -1}, order{"bob", 2}, order{"cyd", 0})
	runneltest.SetRows(script, a.table, map[string]account{"ada": {Sum: 10}, "cyd": {Sum: 5}, "dan": {Sum: 6}})
	r := runneltest.SetRows(script, a.table, map[string]account{"dan": {Sum: 7}}).Run()
	wantRows(t, r, a, map[string]account{"ada": {11, []int{1}}, "bob": {2, []int{2}}, "dan": {Sum: 7}})
	wantRows(t, runneltest.Process(t, a.orders, "p"), a, map[string]account{})
}

// What an iteration does in which the partition is lost is not committed.
func TestRowsOfALostPartition(t *testing.T) {
	for name, middleware := range map[string][]runnel.Middleware{
		"loop":       nil,
		"middleware": {func(next runnel.Handler) runnel.Handler { return next }},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccounts(0)
			a.process(runnel.ProcessorOptions{Middleware: middleware}, func(ctx context.Context, o order) error {
				time.Sleep(time.Second)
				a.add(ctx, o)
				return a.out.Emit(ctx, o)
			})
			r := runneltest.Events(t, a.orders, "p").Records(order{"ada", 1}, order{"ada", 2}).Wait(1500 * time.Millisecond).Lose().Run()
			if got := runneltest.Emitted(t, r, a.out); len(r.Taken) != 2 || len(r.Acked) != 1 || !slices.Equal(got, []order{{"ada", 1}}) {
				t.Errorf("%s: took %v, acked %v, emitted %v", name, r.Taken, r.Acked, got)
			}
			wantRows(t, r, a, map[string]account{"ada": {1, []int{1}}})
		})
	}
}

// What is sent stays, though the iteration fails; what is emitted does not, and does not fail as sends do.
func TestSentAndEmittedAreApart(t *testing.T) {
	a := newAccounts(0)
	a.process(runnel.ProcessorOptions{OnError: runnel.Ignore}, func(ctx context.Context, o order) error {
		event := runnel.Outgoing[order]{Record: o, Key: "k", Headers: map[string]string{"of": o.Customer}}
		if err := a.out.EmitEvents(ctx, event); err != nil {
			t.Error(err)
		}
		if err := a.out.Send(ctx, order{"sent", o.Amount}); err != nil && o.Amount < 3 {
			t.Error(err)
		}
		if o.Amount == 1 {
			return errRefund
		}
		return nil
	})
	r := runneltest.Process(t, a.orders, "p", order{"ada", 1}, order{"bob", 2})
	if got := runneltest.Sent(t, r, a.out); !slices.Equal(got, []order{{"sent", 1}, {"sent", 2}}) {
		t.Errorf("sent %v", got)
	}
	want := []runnel.Outgoing[order]{{Record: order{"bob", 2}, Key: "k", Headers: map[string]string{"of": "bob"}}}
	if got := runneltest.EmittedEvents(t, r, a.out); !reflect.DeepEqual(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
	r = runneltest.Events(t, a.orders, "p").Records(order{"cyd", 3}).FailSends(errors.New("away")).Run()
	if got := runneltest.Emitted(t, r, a.out); !slices.Equal(got, []order{{"cyd", 3}}) {
		t.Errorf("emitted %v where sends fail", got)
	}
	if got := runneltest.Sent(t, r, a.out); got != nil {
		t.Errorf("sent %v where sends fail", got)
	}
}

// A row ends by the time of the events, counted from the first event or from when it was set.
func TestRowsEndByTheTimeOfTheScript(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	given := map[string]account{"ada": {Sum: 10}}
	a := newAccounts(time.Hour)
	a.process(runnel.ProcessorOptions{}, func(ctx context.Context, o order) error {
		if o.Amount > 0 {
			a.add(ctx, o)
		}
		return nil
	})
	tests := []struct {
		name string
		run  func(s *runneltest.Script[order]) *runneltest.Script[order]
		want []string
	}{
		{"a minute before", func(s *runneltest.Script[order]) *runneltest.Script[order] {
			return runneltest.SetRows(s, a.table, given).Appended(began).Records(order{"bob", 1}).
				Appended(began.Add(59 * time.Minute)).Records(order{"", 0})
		}, []string{"ada", "bob"}},
		{"an hour later", func(s *runneltest.Script[order]) *runneltest.Script[order] {
			return runneltest.SetRows(s, a.table, given).Appended(began).Records(order{"", 0}).
				Appended(began.Add(30 * time.Minute)).Records(order{"bob", 1}).Appended(began.Add(time.Hour)).Records(order{"", 0})
		}, []string{"bob"}},
		{"however late they are given", func(s *runneltest.Script[order]) *runneltest.Script[order] {
			return runneltest.SetRows(s.Appended(began).Records(order{"", 0}).Appended(began.Add(time.Hour)).Records(order{"", 0}), a.table, given)
		}, nil},
		{"set again", func(s *runneltest.Script[order]) *runneltest.Script[order] {
			return runneltest.SetRows(s, a.table, given).Appended(began).Records(order{"ada", 1}).
				Appended(began.Add(time.Hour - time.Millisecond)).Records(order{"ada", 1}).
				Appended(began.Add(2*time.Hour - 2*time.Millisecond)).Records(order{"", 0})
		}, []string{"ada"}},
	}
	for _, tt := range tests {
		r := tt.run(runneltest.Events(t, a.orders, "p")).Run()
		if got := slices.Sorted(maps.Keys(runneltest.Rows(t, r, a.table))); !slices.Equal(got, tt.want) {
			t.Errorf("%s: rows of %q, want of %q", tt.name, got, tt.want)
		}
	}
}

// A change in place is an error of the test, unless the row is set or the iteration fails.
func TestRowsThatAreChangedInPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		opts  runnel.ProcessorOptions
		after func(rows *runnel.Rows[account], row account) error
		want  int // errors
	}{
		"not set":          {after: func(*runnel.Rows[account], account) error { return nil }, want: 1},
		"set":              {after: func(rows *runnel.Rows[account], row account) error { rows.Set("ada", row); return nil }},
		"deleted":          {after: func(rows *runnel.Rows[account], _ account) error { rows.Delete("ada"); return nil }},
		"failed iteration": {after: func(*runnel.Rows[account], account) error { return errRefund }, opts: runnel.ProcessorOptions{OnError: runnel.Ignore}},
	} {
		a := newAccounts(0)
		a.process(tt.opts, func(ctx context.Context, o order) error {
			rows := a.table.Rows(ctx)
			row, ok := rows.Get("ada")
			if !ok {
				return nil
			}
			row.Seen[0] = o.Amount
			return tt.after(rows, row)
		})
		told := &tellingTB{TB: t}
		script := runneltest.Events(told, a.orders, "p").Records(order{"x", 1}, order{"y", 1}, order{"z", 2})
		runneltest.SetRows(script, a.table, map[string]account{"ada": {1, []int{0}}}).Run()
		if len(told.errors) != tt.want || tt.want > 0 && !strings.Contains(told.errors[0], `table accounts: the row of key "ada"`) {
			t.Errorf("%s: errors %q, want %d", name, told.errors, tt.want)
		}
	}
}

// Rows that are read and not changed are no error, whatever is in them.
func TestRowsThatAreRead(t *testing.T) {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, &runnel.StreamOptions{Partitions: 1}) // one row for all customers
	type row struct {
		Of map[string]float64
		At time.Time
	}
	table := runnel.NewTable[*row](orders, "rows", nil)
	orders.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, o order) error {
		rows := table.Rows(ctx)
		if r, ok := rows.Get("all"); ok {
			_ = r.Of[o.Customer]
			return nil
		}
		rows.Set("all", &row{Of: map[string]float64{"a": 1, "b": 2, "c": 3}, At: e.Appended()})
		return nil
	}), &runnel.ProcessorOptions{Tables: []runnel.State{table}})
	r := runneltest.Process(t, orders, "p", order{"a", 1}, order{"b", 1}, order{"c", 1})
	if got := runneltest.Rows(t, r, table)["all"]; r.Err != nil || got == nil || got.Of["c"] != 3 {
		t.Errorf("row %v, %v", got, r.Err)
	}
}

func TestMistakesWithTablesAreFatal(t *testing.T) {
	a, other := newAccounts(0), newAccounts(0)
	a.process(runnel.ProcessorOptions{}, func(context.Context, order) error { return nil })
	other.process(runnel.ProcessorOptions{}, func(context.Context, order) error { return nil })
	free := runnel.NewTable[int](a.orders, "free", nil)
	bad := runnel.NewTable[stubborn](a.orders, "bad", nil)
	a.orders.Process("q", runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), &runnel.ProcessorOptions{Tables: []runnel.State{bad}})
	a.orders.Process("none", runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	for name, fn := range map[string]func(t testing.TB){
		"rows of another app":  func(t testing.TB) { runneltest.Rows(t, runneltest.Process(t, a.orders, "p"), other.table) },
		"set in another app":   func(t testing.TB) { runneltest.SetRows(runneltest.Events(t, a.orders, "p"), other.table, nil) },
		"set, of no processor": func(t testing.TB) { runneltest.SetRows(runneltest.Events(t, a.orders, "p"), free, nil).Run() },
		"rows, of no tables":   func(t testing.TB) { runneltest.Rows(t, runneltest.Process(t, a.orders, "none"), a.table) },
		"set, of no tables":    func(t testing.TB) { runneltest.SetRows(runneltest.Events(t, a.orders, "none"), a.table, nil).Run() },
		"not to be encoded": func(t testing.TB) {
			runneltest.SetRows(runneltest.Events(t, a.orders, "q"), bad, map[string]stubborn{"k": {}}).Run()
		},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			fn(&fatalTB{TB: t})
			t.Errorf("%s: no mistake", name)
		}()
		<-done
	}
}

// stubborn is a row that cannot be encoded.
type stubborn struct{}

func (stubborn) MarshalText() ([]byte, error) { return nil, errors.New("no") }

func (*stubborn) UnmarshalText([]byte) error { return nil }

// tellingTB keeps the errors of a test that is expected to have some.
type tellingTB struct {
	testing.TB
	errors []string
}

func (f *tellingTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
