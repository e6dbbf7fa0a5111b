package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A third worker joins two: as few partitions move as can be, and the others go
// on without a pause.
func TestJoinMovesTheFewest(t *testing.T) {
	const partitions, pace = 16, 5 * time.Millisecond
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	start := func(name string) *parcelApp {
		a := newParcelApp(t, srv.URL(), name, nil)
		tr.process(a, "check", nil, nil)
		return a.run()
	}
	workers := []*parcelApp{start("w1"), start("w2")}
	flow := startFlow(t, newProducer(t, srv.URL(), partitions), tr.history, partitions, pace)
	ready(t, 50*time.Second, workers...)
	await(t, "the flow", 50*time.Second, func() bool { return tr.passed("check", partitions, 100) })

	before := tr.owners("check")
	tr.takeGaps("check")
	began := time.Now()
	joined := start("w3")
	await(t, "a share for the third", 50*time.Second, func() bool { return countOwned(tr, "w3") >= partitions/3 })
	took := time.Since(began)
	ready(t, 50*time.Second, workers[0], workers[1], joined)
	mark := flow.round.Load() + 50
	await(t, "all to go on", 50*time.Second, func() bool { return tr.passed("check", partitions, mark) })
	gaps, after := tr.takeGaps("check"), tr.owners("check")

	moved, stayed, longest := 0, time.Duration(0), time.Duration(0)
	for p := range partitions {
		if before[p] != after[p] {
			moved++
			longest = max(longest, gaps[p])
		} else {
			stayed = max(stayed, gaps[p])
		}
	}
	t.Logf("join: %d of %d partitions moved, after %v; longest pause between two iterations: %v where they stayed, %v where they moved; the pace is %v",
		moved, partitions, took.Round(time.Millisecond), stayed.Round(time.Millisecond), longest.Round(time.Millisecond), pace)
	if most := (partitions + 2) / 3; moved > most {
		t.Errorf("%d partitions moved, want at most %d", moved, most)
	}
	if stayed > 500*time.Millisecond {
		t.Errorf("a partition that stayed paused for %v", stayed)
	}
	flow.stop()
	awaitRest(t, srv, partitions, 1)
	for _, a := range append(workers, joined) {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	}
	if report := tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}}); report.Repeats > 0 {
		t.Errorf("%d events were processed twice", report.Repeats)
	}
}

func countOwned(tr *tracker, worker string) int {
	n := 0
	for _, w := range tr.owners("check") {
		if w == worker {
			n++
		}
	}
	return n
}

// A handler takes three times the lock's expiry while another worker joins:
// nobody is declared dead, nothing is lost or repeated.
func TestSlowHandlerSurvivesAJoin(t *testing.T) {
	t.Parallel()
	const partitions = 4
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	running := make(chan struct{}, partitions)
	start := func(name string) *parcelApp {
		a := newParcelApp(t, srv.URL(), name, func(o *runnel.Options) {
			o.Stream.Partitions = partitions
			o.Processor.Lease = shortExpiry
		})
		tr.process(a, "check", nil, func(_ context.Context, _ *runnel.Event, p parcel) error {
			if p.Seq == 1 {
				running <- struct{}{}
				<-time.After(3 * shortExpiry)
			}
			return nil
		})
		return a
	}
	first := start("w1")
	keys := keysOf(partitions)
	for seq := range int64(20) {
		for _, key := range keys {
			first.send(parcel{Key: key, Seq: seq + 1})
		}
	}
	first.run()
	for range partitions {
		receive(t, "a slow handler", running)
	}
	second := start("w2").run()
	awaitRest(t, srv, partitions, 1)
	ready(t, 60*time.Second, first, second)
	t.Logf("owners: %v", tr.owners("check"))
	for _, a := range []*parcelApp{first, second} {
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		for _, word := range []string{"rejoining", "partitions lost", "worker halts"} {
			if line := a.log.line(word); line != "" {
				t.Errorf("worker %s: %s", a.name, line)
			}
		}
	}
	if report := tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}}); report.Repeats > 0 || report.Unclean > 0 {
		t.Errorf("%d events were processed twice, %d handovers were unclean", report.Repeats, report.Unclean)
	}
}

// Sixteen programs with 256 partitions between them start at once.
func TestManyPartitionsSettle(t *testing.T) {
	const partitions, programs, promised = 256, 16, 5 * time.Second
	srv := redistest.Start(t)
	apps := make([]*parcelApp, programs)
	for i := range apps {
		apps[i] = newParcelApp(t, srv.URL(), fmt.Sprint("w", i), func(o *runnel.Options) { o.Stream.Partitions = partitions })
		newTracker(history.Memory()).process(apps[i], "check", nil, nil)
	}
	began := time.Now()
	for _, a := range apps {
		a.run()
	}
	rdb := srv.Client(t)
	fair := func() bool {
		for _, a := range apps {
			if a.app.Ready() != nil {
				return false
			}
		}
		return spread(t, rdb, partitions, programs)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("shares %v", shares(t, rdb, partitions))
			for _, a := range apps {
				t.Logf("%s: %v\n%s", a.name, a.app.Ready(), a.log.text())
			}
		}
	})
	await(t, "every program to own its share", 10*promised, fair)
	t.Logf("%d partitions of %d executors settled within %v (promised: %v)", partitions, programs, time.Since(began).Round(time.Millisecond), promised)
	began = time.Now()
	for _, a := range apps {
		a.cancel()
	}
	for _, a := range apps {
		if err := a.ended(60 * time.Second); err != nil {
			t.Error(err)
		}
	}
	t.Logf("all stopped within %v", time.Since(began).Round(time.Millisecond))
	if locks := rdb.Keys(t.Context(), "__lock:*").Val(); len(locks) > 0 {
		t.Errorf("locks are left: %q", locks)
	}
}
