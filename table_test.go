// What an Atomic processor changes and emits comes once: in memory, in fake time with workers that die, and on a server.

package runnel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// sum is the row of a table of tests.
type sum struct{ Total, Times int }

// summing declares a table of the sums of items by what they are modulo ten, in a processor "p" that also emits each
// sum to the stream "sums".
type summing struct {
	app   *runnel.App
	items *runnel.Stream[item]
	sums  *runnel.Stream[sum]
	table *runnel.Table[sum]
}

func mod10(i item) string { return fmt.Sprint(i.N % 10) }

func newSumming(opts *runnel.Options, stream *runnel.StreamOptions, table *runnel.TableOptions) *summing {
	s := &summing{app: runnel.New("contract", opts)}
	s.items = runnel.NewStream(s.app, "items", mod10, stream)
	s.sums = runnel.NewStream(s.app, "sums", func(s sum) string { return fmt.Sprint(s.Total % 10) }, stream)
	s.table = runnel.NewTable[sum](s.items, "sums", table)
	return s
}

// add adds an item to its row, and emits that.
func (s *summing) add(ctx context.Context, i item) error {
	row := s.table.Rows(ctx).Update(mod10(i), func(row sum) sum { return sum{row.Total + i.N, row.Times + 1} })
	return s.sums.Emit(ctx, row)
}

func (s *summing) process(fn runnel.ProcessFunc[item], opts runnel.ProcessorOptions) {
	opts.Tables = []runnel.State{s.table}
	s.items.Process("p", fn, &opts)
}

func TestRowsInMemory(t *testing.T) {
	s := newSumming(nil, nil, nil)
	s.process(func(ctx context.Context, events *runnel.Events[item]) error {
		rows := s.table.Rows(ctx)
		for i := range events.Records() {
			if i.N < 0 { // fails once it has changed rows
				rows.Set("1", sum{Total: 1000})
				rows.Delete("2")
				if err := s.sums.Emit(events.Context(), sum{}); err != nil {
					t.Error(err)
				}
				return errBad
			}
			if err := s.add(events.Context(), i); err != nil {
				return err
			}
			if got, ok := rows.Get(mod10(i)); !ok || got.Times == 0 {
				t.Errorf("row %v, %v", got, ok)
			}
		}
		return nil
	}, runnel.ProcessorOptions{OnError: runnel.Ignore})
	r := runneltest.Process(t, s.items, "p", items(1, 12, -1, 11, 2, -2, 21)...)
	wantErr(t, r.Err, nil)
	got := runneltest.Emitted(t, r, s.sums)
	want := []sum{{1, 1}, {12, 1}, {12, 2}, {14, 2}, {33, 3}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
	wantAcked(t, r, "1-0", "2-0", "3-0", "4-0", "5-0", "6-0", "7-0")
}

// onServer checks that rows and outputs are those of items from 1 to n, each once.
func (s *summing) check(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	want := map[string]sum{}
	for i := 1; i <= n; i++ {
		row := want[mod10(item{i})]
		want[mod10(item{i})] = sum{row.Total + i, row.Times + 1}
	}
	rows := 0
	for row, err := range s.table.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		if row.Value != want[row.Key] {
			t.Errorf("row %s is %v, want %v", row.Key, row.Value, want[row.Key])
		}
		if got, ok, err := s.table.Get(ctx, row.Key); got != row.Value || !ok || err != nil {
			t.Errorf("Get %s = %v, %v, %v", row.Key, got, ok, err)
		}
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}

// Three workers, of which some die: in the end each row and each output is that of every item once.
func TestRowsSurviveWorkers(t *testing.T) {
	const n, partitions = 1500, 4
	stream := &runnel.StreamOptions{Partitions: partitions}
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		w := newSumming(o, stream, nil)
		w.process(runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
			time.Sleep(20 * time.Millisecond)
			return w.add(ctx, i)
		}), runnel.ProcessorOptions{Lease: time.Second})
		return w.app
	}, func(c *runneltest.Cluster) {
		s := newSumming(c.Options("sender"), stream, nil)
		defer s.app.Close()
		all := make([]item, n)
		for i := range all {
			all[i].N = i + 1
		}
		if err := s.items.Send(c.Context(), all...); err != nil {
			t.Fatal(err)
		}
		a, b := c.Start("a"), c.Start("b")
		c.Sleep(2 * time.Second)
		a.Kill()
		c.Sleep(time.Second)
		c.Start("c")
		c.Sleep(2 * time.Second)
		b.Freeze(3 * time.Second)
		count := func() (sent int64) {
			for p := range partitions {
				sent += c.Redis().XLen(c.Context(), fmt.Sprint("__strm:contract.sums.", p)).Val()
			}
			return sent
		}
		c.Wait(func() bool { return count() >= n })
		c.Sleep(5 * time.Second)
		if got := count(); got != n {
			t.Errorf("%d outputs, want %d", got, n)
		}
		s.check(c.Context(), t, n)
	})
}
