// Events that were deleted from the stream are counted and logged.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A lines is a log that a test searches while it is written.
type lines struct{ redistest.Log }

func (l *lines) has(parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return true
		}
	}
	return false
}

// Events that are removed before they were delivered are counted and logged, while the
// worker runs and when it starts.
func TestEventsRemovedByHandAreTold(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	const log, own = "__strm:contract.items.0", "__own:contract.items.p.0"
	lost := func() string { return rdb.HGet(t.Context(), own, "lost").Val() }
	var out lines
	var seen numbered
	start := func(goOn <-chan struct{}) (*runnel.Stream[item], func()) {
		app := runnel.New("contract", &runnel.Options{RedisURL: srv.URL(), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		t.Cleanup(func() { app.Close() })
		s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 1})
		s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, i item) error {
			<-goOn
			seen.see(e, i)
			return nil
		}), &runnel.ProcessorOptions{Prefetch: 2, Lease: 3 * time.Second})
		return s, running(t, app)
	}
	goOn := make(chan struct{})
	s, stop := start(goOn)
	for n := range 20 {
		if err := s.Send(t.Context(), item{n}); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Eventually(t, "some are delivered", func() bool { return rdb.XInfoGroups(t.Context(), log).Val()[0].Pending >= 2 })
	if err := rdb.XTrimMaxLen(t.Context(), log, 5).Err(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	redistest.Eventually(t, "the last is processed", func() bool { all := seen.of(0); return len(all) > 0 && all[len(all)-1] == 19 })
	want := fmt.Sprint(20 - len(seen.of(0)))
	redistest.Eventually(t, "the gap is counted", func() bool { return lost() == want })
	redistest.Eventually(t, "the gap is told", func() bool {
		return out.has("events lost", "stream=items", "partition=0", "processor=p", "events="+want+" ")
	})
	stop()
	for n := range 10 {
		if err := s.Send(t.Context(), item{20 + n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.XTrimMaxLen(t.Context(), log, 4).Err(); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprint(20 - len(seen.of(0)) + 6)
	_, stop = start(goOn)
	defer stop()
	redistest.Eventually(t, "what is missing at the start is counted", func() bool { return lost() == want })
	redistest.Eventually(t, "it is told", func() bool { return out.has("events lost", "events=6 ") })
	redistest.Eventually(t, "the rest is processed", func() bool { all := seen.of(0); return all[len(all)-1] == 29 })
}
