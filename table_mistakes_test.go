// Mistakes with tables and with what is emitted, each told where it is made.

package runnel_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/runneltest"
)

func TestMistakesOfRegistrationWithTables(t *testing.T) {
	none := func(context.Context, *runnel.Event, item) error { return nil }
	wantPanic(t, "a nil Table: call NewTable before Process", func() {
		s := newSumming(nil, nil, nil)
		var late *runnel.Table[sum]
		s.items.Process("p", runnel.Each(none), &runnel.ProcessorOptions{Tables: []runnel.State{late}})
	})
	wantPanic(t, "table sums is in Tables twice", func() {
		s := newSumming(nil, nil, nil)
		s.items.Process("p", runnel.Each(none), &runnel.ProcessorOptions{Tables: []runnel.State{s.table, s.table}})
	})
	wantPanic(t, "option Memory: -1 is negative", func() { newSumming(nil, nil, &runnel.TableOptions{Memory: -1}) })
	wantPanic(t, "Forward p: stream sums is of another App", func() {
		runnel.Forward(newSumming(nil, nil, nil).items, "p", newSumming(nil, nil, nil).sums, func(i item) sum { return sum{} }, nil)
	})
	wantPanic(t, "Process p: nil function", func() { newSumming(nil, nil, nil).items.Process("p", runnel.Each[item](nil), nil) })
	wantPanic(t, "Process p: nil function", func() { newSumming(nil, nil, nil).items.Process("p", runnel.EachBatch[item](1, 0, nil), nil) })
	wantPanic(t, "Take(0, 0s): n must be at least 1", func() {
		runnel.EachBatch(0, 0, func(context.Context, []*runnel.Event, []item) error { return nil })
	})
}

func TestMistakesOfAnIteration(t *testing.T) {
	other := newSumming(nil, nil, nil)
	for name, tt := range map[string]struct {
		atomic bool
		fn     func(ctx context.Context, s *summing) error
		want   string
	}{
		"another app": {true, func(ctx context.Context, s *summing) error { return other.sums.Emit(ctx, sum{}) }, "no iteration of an Atomic processor of the stream's own App"},
		"not atomic":  {false, func(ctx context.Context, s *summing) error { return s.sums.Emit(ctx, sum{}) }, "set ProcessorOptions.Atomic"},
		"no context":  {true, func(ctx context.Context, s *summing) error { return s.sums.Emit(context.Background(), sum{}) }, "use the context of the iteration"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSumming(nil, nil, nil)
			s.items.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, _ item) error { return tt.fn(ctx, s) }),
				&runnel.ProcessorOptions{OnError: runnel.Ignore, Atomic: tt.atomic})
			r := runneltest.Process(t, s.items, "p", items(1)...)
			if len(r.IgnoredErrs) != 1 || !strings.Contains(r.IgnoredErrs[0].Error(), tt.want) {
				t.Errorf("%v, want %q", r.IgnoredErrs, tt.want)
			}
		})
	}
}

// A build of the processor that leaves a table out says so, since what it handles does not count there; one that has it does not.
func TestATableThatIsLeftOutIsTold(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, _ *redis.Client) {
		for _, with := range []bool{true, false, true} {
			var log redistest.Log
			s := newSumming(&runnel.Options{RedisURL: url, WorkerName: "w", Logger: slog.New(slog.NewTextHandler(&log, nil))}, nil, nil)
			opts := runnel.ProcessorOptions{Lease: time.Second}
			if with {
				opts.Tables = []runnel.State{s.table}
			}
			s.items.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { return nil }), &opts)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- s.app.Run(ctx) }()
			redistest.Eventually(t, "the worker to be ready", func() bool { return s.app.Ready() == nil })
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			s.app.Close()
			if n := strings.Count(log.String(), `msg="table left out"`); n == 1 == with || n > 1 ||
				!with && !strings.Contains(log.String(), "app=contract worker=w stream=items processor=p table=sums help=") {
				t.Errorf("with the table %v: %s", with, log.String())
			}
		}
	})
}
