// What is wrong with tables and what is emitted: a clear error each, and nothing is lost.

package runnel_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

func TestTablesAreDeclaredOnce(t *testing.T) {
	none := func(context.Context, *runnel.Events[item]) error { return nil }
	s := newSumming(nil, nil, nil)
	wantPanic(t, "a table of that name already", func() { runnel.NewTable[int](s.items, "sums", nil) })
	wantPanic(t, "below a millisecond", func() { runnel.NewTable[int](s.items, "short", &runnel.TableOptions{TTL: time.Microsecond}) })
	wantPanic(t, "no row", func() { runnel.NewTable[sum](s.items, "fields", &runnel.TableOptions{Codec: codec.Fields}) })
	wantPanic(t, "is of stream items", func() {
		s.sums.Process("q", func(context.Context, *runnel.Events[sum]) error { return nil }, &runnel.ProcessorOptions{Tables: []runnel.State{s.table}})
	})
	wantPanic(t, "reads ByPosition", func() {
		s.items.Process("p", none, &runnel.ProcessorOptions{Reads: runnel.ByGroup, Atomic: true})
	})
	s.process(none, runnel.ProcessorOptions{})
	wantPanic(t, "belongs to processor p already", func() {
		s.items.Process("q", none, &runnel.ProcessorOptions{Tables: []runnel.State{s.table}})
	})
	wantPanic(t, "of no processor that has the table", func() { s.table.Rows(t.Context()) })
	if err := s.sums.Emit(t.Context(), sum{}); !errors.Is(err, runnel.ErrNotAtomic) {
		t.Errorf("Emit outside of a processor: %v", err)
	}
	if _, _, err := newSumming(nil, nil, &runnel.TableOptions{Local: true}).table.Get(t.Context(), "1"); !errors.Is(err, runnel.ErrLocal) {
		t.Errorf("Get of a local table: %v", err)
	}
}

// An iteration that cannot be committed fails like any other.
func TestAnIterationThatCannotBeCommittedFails(t *testing.T) {
	s := newSumming(nil, nil, nil)
	texts := runnel.NewTable[string](s.items, "texts", nil)
	s.items.Process("p", runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
		switch i.N {
		case 1:
			texts.Rows(ctx).Set(e.Key(), strings.Repeat("x", 60<<20))
		case 2:
			for range 20 {
				if err := s.sums.EmitEvents(ctx, runnel.Outgoing[sum]{Headers: map[string]string{"h": strings.Repeat("x", 1<<20)}}); err != nil {
					return err
				}
			}
		case 3:
			return s.sums.EmitEvents(ctx, runnel.Outgoing[sum]{DedupID: e.ID})
		case 4:
			return s.sums.EmitEvents(ctx, runnel.Outgoing[sum]{After: time.Hour})
		case 5:
			texts.Rows(ctx).Set(e.Key(), "small")
		}
		return s.sums.Emit(ctx, sum{Total: i.N})
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore, Tables: []runnel.State{texts}})
	r := runneltest.Process(t, s.items, "p", items(1, 2, 3, 4, 5)...)
	if len(r.IgnoredErrs) != 4 {
		t.Fatalf("%d errors: %v", len(r.IgnoredErrs), r.IgnoredErrs)
	}
	for i, want := range []string{"make rows smaller", "too much for one commit", "DedupID", "delayed"} {
		if err := r.IgnoredErrs[i]; !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("error %d is %.1000v, want %q", i+1, err, want)
		}
	}
	if got := runneltest.Emitted(t, r, s.sums); len(got) != 1 || got[0].Total != 5 {
		t.Errorf("emitted %v, want that of item 5 alone", got)
	}
}

// What the metadata says of a table is compared before anything is processed.
func TestATableIsWhatItWasDeclared(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		declare := func(processor string, opts *runnel.TableOptions) *summing {
			s := newSumming(&runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)}, &runnel.StreamOptions{Partitions: 1}, opts)
			t.Cleanup(func() { s.app.Close() })
			if processor != "" {
				s.items.Process(processor, runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error { return s.add(ctx, i) }),
					&runnel.ProcessorOptions{Tables: []runnel.State{s.table}})
			}
			return s
		}
		reader := declare("", nil)
		if _, ok, err := reader.table.Get(t.Context(), "1"); ok || err != nil {
			t.Errorf("a row of a table that no worker has had: %v, %v", ok, err)
		}
		if keys, err := rdb.Keys(t.Context(), "*").Result(); len(keys) > 0 || err != nil {
			t.Errorf("to read wrote %q, %v", keys, err)
		}
		for _, partition := range []int{-1, 1} {
			if _, _, err := reader.table.GetAt(t.Context(), partition, "1"); err == nil || !strings.Contains(err.Error(), "there is no partition") {
				t.Errorf("a row of partition %d: %v", partition, err)
			}
		}
		s := declare("p", nil)
		running(t, s.app)
		if err := s.items.Send(t.Context(), items(1, 11)...); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the row", func() bool {
			row, _, err := reader.table.Get(t.Context(), "1")
			return row == sum{12, 2} && err == nil
		})
		for what, other := range map[string]*summing{
			"processor": declare("q", nil), "codec": declare("p", &runnel.TableOptions{Codec: codec.JSON}), "local": declare("p", &runnel.TableOptions{Local: true}),
		} {
			err := other.app.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "table sums: its metadata says "+what) {
				t.Errorf("another %s: %v", what, err)
			}
		}
		_, _, err := declare("", &runnel.TableOptions{Codec: codec.JSON}).table.Get(t.Context(), "1")
		if err == nil || !strings.Contains(err.Error(), "says codec msgpack") {
			t.Errorf("Get with another codec: %v", err)
		}
		if err := rdb.HSet(t.Context(), "__rows:contract.items.sums.0", "2", "no sum").Err(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := reader.table.Get(t.Context(), "2"); err == nil || !strings.Contains(err.Error(), `decode the row of key "2"`) {
			t.Errorf("Get of a row that is none: %v", err)
		}
	})
}

// A row that cannot be decoded ends the function where it was asked for, and fails the event; others go on.
func TestARowThatCannotBeDecodedFailsTheEvent(t *testing.T) {
	stream := &runnel.StreamOptions{Partitions: 1}
	var returned, ended, added []int
	runneltest.Sim(t, func(o *runnel.Options) *runnel.App {
		s := newSumming(o, stream, nil)
		s.process(runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
			defer func() { ended = append(ended, i.N) }()
			err := s.add(ctx, i)
			returned = append(returned, i.N)
			return err
		}), runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 1}})
		return s.app
	}, func(c *runneltest.Cluster) {
		s := newSumming(c.Options("sender"), stream, nil)
		defer s.app.Close()
		if err := c.Redis().HSet(c.Context(), "__rows:contract.items.sums.0", "1", "\xc1").Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.items.Send(c.Context(), items(1, 2, 11, 3)...); err != nil {
			t.Fatal(err)
		}
		c.Start("a")
		c.Sleep(time.Minute)
		for _, key := range []string{"1", "2", "3"} {
			row, ok, err := s.table.Get(c.Context(), key)
			if (err != nil) != (key == "1") || err != nil && !strings.Contains(err.Error(), `table sums: decode the row of key "1"`) {
				t.Errorf("Get %s: %v", key, err)
			}
			if ok {
				added = append(added, row.Total)
			}
		}
		if n := c.Redis().XLen(c.Context(), "__dead:contract.items.p.0").Val(); n != 2 {
			t.Errorf("%d dead letters, want 2", n)
		}
	})
	if !slices.Equal(ended, []int{1, 2, 11, 3}) || !slices.Equal(returned, []int{2, 3}) || !slices.Equal(added, []int{2, 3}) {
		t.Errorf("ended with %v, returned with %v, added %v", ended, returned, added)
	}
}
