package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/embedded"
	"github.com/runnel-go/runnel/internal/leader"
)

// taskWorker is a worker with tasks only, on an embedded server in fake time.
func taskWorker(t *testing.T, srv *embedded.Server, name string, log *slog.Logger, tasks ...*leader.Task) *Worker {
	t.Helper()
	_, client := open(t, srv)
	return New(&Config{
		App: "app", Worker: name, Client: client, Logger: log, Tasks: tasks, LeaderPoll: 4 * time.Second, TimeZone: time.UTC,
		Ensure: func(context.Context, Step) error { return nil },
	})
}

type times struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func (x *times) note() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at = append(x.at, time.Since(x.began))
}

func (x *times) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.at)
}

func runFor(t *testing.T, d time.Duration, workers ...*Worker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func inBubble(t *testing.T, fn func(t *testing.T, srv *embedded.Server)) {
	synctest.Test(t, func(t *testing.T) {
		srv := embedded.New()
		defer srv.Close()
		fn(t, srv)
	})
}

var quiet = slog.New(slog.DiscardHandler)

func TestEveryBeginsAfterItsIntervalAndNeverOverlaps(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		x := &times{began: time.Now()}
		w := taskWorker(t, srv, "w", quiet, &leader.Task{Name: "slow", Every: 10 * time.Second, Run: func(context.Context) error {
			x.note()
			if x.count() == 2 {
				time.Sleep(25 * time.Second) // what becomes due meanwhile is left out
			}
			return nil
		}})
		runFor(t, 65*time.Second, w)
		want := []time.Duration{10, 20, 50, 60}
		if len(x.at) != len(want) {
			t.Fatalf("ran at %v, want about %v seconds", x.at, want)
		}
		for i, d := range want {
			if off := x.at[i] - d*time.Second; off < 0 || off > time.Second {
				t.Errorf("run %d at %v, want %v", i, x.at[i], d*time.Second)
			}
		}
	})
}

func TestCronFollowsItsZone(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		var at []time.Time
		zone := time.FixedZone("east", 2*3600)
		daily := func(after time.Time) time.Time { // 07:30 in the zone of its argument
			next := time.Date(after.Year(), after.Month(), after.Day(), 7, 30, 0, 0, after.Location())
			if !next.After(after) {
				next = next.AddDate(0, 0, 1)
			}
			return next
		}
		w := taskWorker(t, srv, "w", quiet, &leader.Task{Name: "report", Next: daily, TimeZone: zone, Run: func(context.Context) error {
			at = append(at, time.Now().UTC())
			return nil
		}})
		runFor(t, 49*time.Hour, w)
		if len(at) != 2 {
			t.Fatalf("ran at %v, want twice in 49 hours", at)
		}
		for _, a := range at {
			if a.Hour() != 5 || a.Minute() != 30 {
				t.Errorf("ran at %v, want 05:30 UTC", a)
			}
		}
	})
}

func TestATaskThatFailsIsLoggedAndCountedAndStopsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		var buf bytes.Buffer
		var mu sync.Mutex
		log := slog.New(slog.NewTextHandler(&lockedWriter{mu: &mu, w: &buf}, nil))
		x := &times{began: time.Now()}
		w := taskWorker(t, srv, "w", log,
			&leader.Task{Name: "once", Run: func(context.Context) error { return errors.New("no luck") }},
			&leader.Task{Name: "again", Every: time.Second, Run: func(context.Context) error { x.note(); return errors.New("boom") }})
		runFor(t, 10*time.Second+500*time.Millisecond, w)
		if x.count() < 9 {
			t.Errorf("ran %d times in 10 s, want it to go on after errors", x.count())
		}
		if got := w.count.TaskFailures.Load(); got < 10 {
			t.Errorf("counted %d failures", got)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"task=once", "no luck", "task=again", "boom"} {
			if !strings.Contains(buf.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, buf.String())
			}
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestLeaderTasksRunOnOneWorkerOncePerTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		var mu sync.Mutex
		var once []string
		running := 0
		leaderTasks := func(name string) []*leader.Task {
			return []*leader.Task{
				{Name: "once", Leader: true, Run: func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					once = append(once, name)
					return nil
				}},
				{Name: "watch", Leader: true, Run: func(ctx context.Context) error {
					mu.Lock()
					if running++; running > 1 {
						t.Error("two leaders at once")
					}
					mu.Unlock()
					<-ctx.Done() // with the term
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				}},
			}
		}
		a, b := taskWorker(t, srv, "a", quiet, leaderTasks("a")...), taskWorker(t, srv, "b", quiet, leaderTasks("b")...)
		ctx, stopFirst := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { a.Run(ctx) })
		time.Sleep(10 * time.Second) // a leads by now
		wg.Go(func() { runFor(t, time.Minute, b) })
		time.Sleep(20 * time.Second)
		stopFirst()
		wg.Wait()
		if want := "a b"; strings.Join(once, " ") != want {
			t.Errorf("the task ran on %v, want %s: once per term", once, want)
		}
	})
}

func TestAWorkerWithoutLeaderTasksDoesNotCampaign(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		w := taskWorker(t, srv, "w", quiet, &leader.Task{Name: "every", Every: time.Second, Run: func(context.Context) error { return nil }})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(20 * time.Second)
		if n := w.client.Redis().Exists(ctx, "__leader:app").Val(); n != 0 {
			t.Error("it is the leader, with nothing to lead")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestATaskThatIgnoresItsContextIsNamedAtShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		release := make(chan struct{})
		w := taskWorker(t, srv, "w", quiet, &leader.Task{Name: "deaf", Run: func(context.Context) error { <-release; return nil }})
		w.cfg.Grace = 8 * time.Second
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		began := time.Now()
		err := w.Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "deaf") {
			t.Errorf("err = %v, want one that names the task", err)
		}
		if d := time.Since(began); d < 69*time.Second || d > 70*time.Second {
			t.Errorf("returned after %v, want the minute, Grace and a second", d)
		}
		close(release)
	})
}

// A timer counts on the monotonic clock: after a clock was set back it fires before its time, and
// that time comes again.
func TestCronRunsOnceThoughTheClockIsSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *embedded.Server) {
		var back atomic.Int64
		now := func() time.Time { return time.Now().Round(0).Add(-time.Duration(back.Load())) }
		began := now()
		var at []time.Duration
		w := taskWorker(t, srv, "w", quiet, &leader.Task{
			Name: "hourly",
			Next: func(after time.Time) time.Time { return after.Truncate(time.Hour).Add(time.Hour) },
			Run:  func(context.Context) error { at = append(at, now().Sub(began)); return nil },
		})
		w.tasks.Now = now
		time.AfterFunc(30*time.Minute, func() { back.Store(int64(20 * time.Minute)) })
		runFor(t, 2*time.Hour+30*time.Minute, w)
		if fmt.Sprint(at) != "[1h0m0s 2h0m0s]" {
			t.Errorf("ran at %v by the clock, want once an hour", at)
		}
	})
}
