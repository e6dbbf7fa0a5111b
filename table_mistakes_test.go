// Mistakes with tables and with what is emitted, each told where it is made.

package runnel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
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
