package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const movedKeys = 20

// A leaver is an app that moves from one server to a cluster.
type leaver struct {
	*rig
	layout runnel.KeyLayout
	healed atomic.Bool  // what failed does not any more
	hold   atomic.Int64 // the last N that is handled; 0: all are
	ran    atomic.Int64 // of the task
}

// at returns the app for a server and the present layout.
func (l *leaver) at(url string) (*runnel.App, *runnel.Stream[step]) {
	app := runnel.New("shop", &runnel.Options{
		RedisURL: url, KeyLayout: l.layout, Logger: l.logs.Logger(), LeaderPoll: 200 * time.Millisecond,
		Stream: runnel.StreamOptions{Partitions: partitions, Codec: codec.JSON, KeyField: "key", DedupWindow: time.Hour},
		// No worker dies here. A lease that lapsed on a busy machine would repeat events, which is no fault of the move.
		Processor: runnel.ProcessorOptions{Lease: 30 * time.Second, Grace: 300 * time.Millisecond},
	})
	l.t.Cleanup(func() { app.Close() })
	s := runnel.NewStream(app, "steps", func(s step) string { return s.Key }, nil)
	s.Process("walker", runnel.Each(func(ctx context.Context, _ *runnel.Event, s step) error {
		if s.Key == "bad" { // its dead letter is sent again to all processors
			return nil
		}
		if hold := l.hold.Load(); hold > 0 && s.N > int(hold) {
			<-ctx.Done() // so that it stays unacked
			return ctx.Err()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen[s.Key] = append(l.seen[s.Key], s.N)
		return nil
	}), nil)
	fragile := runnel.Each(func(_ context.Context, _ *runnel.Event, s step) error {
		if s.Key == "bad" && !l.healed.Load() {
			return errors.New("it is bad")
		}
		return nil
	})
	s.Process("buryer", fragile, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 1}})
	s.Process("waiter", fragile, &runnel.ProcessorOptions{Retry: &runnel.Retry{Order: runnel.OrderNone, Max: 9, MinBackoff: time.Hour}})
	s.Process("fragile", fragile, &runnel.ProcessorOptions{OnError: runnel.Quarantine})
	app.Every("nightly", time.Hour, func(context.Context) error { l.ran.Add(1); return nil }, &runnel.TaskOptions{Leader: true, Durable: true})
	return app, s
}

// works runs a worker that may end with an error because of a paused partition.
func (l *leaver) works(app *runnel.App) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = app.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	l.t.Cleanup(stop)
	return stop
}

func (l *leaver) count(app *runnel.App, line string) int {
	l.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(l.command(app, line+" --output json", "")), &list); err != nil {
		l.t.Fatal(err)
	}
	return len(list)
}

func (l *leaver) refused(app *runnel.App, line string) string {
	l.t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(l.t.Context(), app, strings.Fields(line), strings.NewReader(""), &out, &errs); code != 1 {
		l.t.Fatalf("%s: exit code %d\n%s%s", line, code, out.String(), errs.String())
	}
	return errs.String()
}

func (l *leaver) sends(s *runnel.Stream[step], n int, after time.Duration) {
	l.t.Helper()
	for k := range movedKeys {
		key := fmt.Sprint("k", k)
		if _, err := s.SendEvents(l.t.Context(), runnel.Outgoing[step]{Record: step{key, n}, DedupID: fmt.Sprint(key, "-", n), After: after}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// before brings an app on one server into every state, and stops it. It returns the quarantined
// partition.
func (l *leaver) before(app *runnel.App, s *runnel.Stream[step]) (quarantined string) {
	l.hold.Store(3)
	stop := l.works(app)
	if err := s.Send(l.t.Context(), step{"bad", 1}); err != nil {
		l.t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		l.sends(s, n, 0)
	}
	l.await("three steps of each are handled, and the bad one is not", func() bool {
		got := l.handled(false)
		for k := range movedKeys {
			if got[fmt.Sprint("k", k)] != 3 {
				return false
			}
		}
		quarantined = l.quarantined(app)
		return quarantined != "" && l.count(app, "dead ls steps/buryer") == 1 && l.count(app, "parked ls steps/waiter") == 1
	})
	if got := l.refused(app, "stream move-layout"); !strings.Contains(got, "run by worker") || !strings.Contains(got, "nothing was changed") {
		l.t.Error(got)
	}
	var out, errs bytes.Buffer
	if code := cli.Main(l.t.Context(), app, []string{"stream", "move-layout", "--yes", "--dry-run"}, nil, &out, &errs); code != 3 || !strings.Contains(out.String(), "not now: ") {
		l.t.Errorf("a dry run: %d, %s%s", code, out.String(), errs.String())
	}
	stop()
	l.sends(s, 6, 100*time.Millisecond)
	l.command(app, "pause steps/walker --why moving", "")
	return quarantined
}

// quarantined returns the quarantined partition of fragile, "" for none.
func (l *leaver) quarantined(app *runnel.App) string {
	l.t.Helper()
	var p struct {
		Partitions []struct {
			Partition  int
			Quarantine *struct{ Reason string }
		}
	}
	if err := json.Unmarshal([]byte(l.command(app, "processor info steps/fragile --output json", "")), &p); err != nil {
		l.t.Fatal(err)
	}
	for _, one := range p.Partitions {
		if one.Quarantine != nil {
			return fmt.Sprint(one.Partition)
		}
	}
	return ""
}

// after checks that everything continues at its position.
func (l *leaver) after(url, quarantined string) {
	app, s := l.at(url)
	l.hold.Store(0)
	l.command(app, "stream verify steps", "")
	if got := l.quarantined(app); got != quarantined {
		l.t.Errorf("partition %q is quarantined, was %s", got, quarantined)
	}
	if l.count(app, "delayed ls steps") != movedKeys || l.count(app, "dead ls steps/buryer") != 1 || l.count(app, "parked ls steps/waiter") != 1 {
		l.t.Error("events that were aside are not")
	}
	l.works(app)
	second, _ := l.at(url)
	l.works(second)
	if rules := l.command(app, "rules ls", ""); !strings.Contains(rules, "moving") {
		l.t.Errorf("the pause is gone: %q", rules)
	}
	l.healed.Store(true)
	l.command(app, "resume steps/walker", "")
	l.command(app, "quarantine release steps/fragile --partition "+quarantined, "")
	l.command(app, "dead replay steps/buryer --yes", "")
	l.command(app, "parked retry steps/waiter", "")
	sent, err := s.SendEvents(l.t.Context(), runnel.Outgoing[step]{Record: step{"k7", 2}, DedupID: "k7-2"}, runnel.Outgoing[step]{Record: step{"k8", 6}, DedupID: "k8-6", After: time.Hour})
	if err != nil || !sent[0].Duplicate || !sent[1].Duplicate {
		l.t.Errorf("sent again: %+v, %v", sent, err)
	}
	l.sends(s, 7, 2*time.Second)
	l.await("everything is handled", func() bool {
		got := l.handled(false)
		for k := range movedKeys {
			if got[fmt.Sprint("k", k)] != 7 {
				return false
			}
		}
		return l.quarantined(app) == "" && l.count(app, "dead ls steps/buryer") == 0 && l.count(app, "parked ls steps/waiter") == 0
	})
	if l.ran.Load() != 0 {
		l.t.Errorf("the task ran %d times", l.ran.Load())
	}
}

// An app in every state is stopped and moved from one server to a cluster. There it continues:
// nothing is lost or repeated, and the order holds.
func TestLeavesForACluster(t *testing.T) {
	l := &leaver{rig: newRig(t, 0)}
	server := redistest.Start(t)
	old, oldSteps := l.at(server.URL())
	quarantined := l.before(old, oldSteps)
	rdb := server.Client(t)
	tasks := rdb.HGetAll(t.Context(), "__task:shop").Val()

	to := "stream move-layout --to " + l.k.URL()
	if plan := l.command(old, to+" --dry-run", ""); !strings.Contains(plan, "nothing was changed") {
		t.Error(plan)
	}
	if done := l.command(old, to+" --yes", ""); !strings.Contains(done, "all keys are at 127.0.0.1") {
		t.Error(done)
	}
	if err := oldSteps.Send(t.Context(), step{"k1", 100}); err == nil {
		t.Error("an event was sent to the old server")
	}
	again, fresh := l.at(server.URL())
	if err := fresh.Send(t.Context(), step{"k1", 100}); err == nil || !strings.Contains(err.Error(), "its keys were moved to the redis at") {
		t.Errorf("sent: %v", err)
	}
	if err := again.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "its keys were moved to the redis at") {
		t.Errorf("a worker ran: %v", err)
	}

	if moved := l.k.Client(t).HGetAll(t.Context(), "__task:{shop}").Val(); len(tasks) != 1 || !reflect.DeepEqual(moved, tasks) {
		t.Errorf("tasks: %v, were %v", moved, tasks)
	}
	l.after(l.k.URL(), quarantined)
	l.command(old, to+" --delete --yes", "")
	if left := rdb.Keys(t.Context(), "__*{*").Val(); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// The same on one server, after a move there and back.
func TestTakesClusterNames(t *testing.T) {
	server := redistest.Start(t)
	l := &leaver{rig: &rig{t: t, seen: map[string][]int{}}}
	old, oldSteps := l.at(server.URL())
	quarantined := l.before(old, oldSteps)
	for _, line := range []string{"", " --back", ""} {
		l.command(old, "stream move-layout --yes"+line, "")
	}
	if err := oldSteps.Send(t.Context(), step{"k1", 100}); err == nil {
		t.Error("an event was sent under the old name")
	}
	l.layout = runnel.LayoutCluster
	l.after(server.URL(), quarantined)
}
