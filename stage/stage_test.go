package stage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/servers"
	"github.com/runnel-go/runnel/stage"
)

type listing struct {
	ID     string
	Place  string
	Price  int
	Closed bool
}

// A log notes calls of functions.
type log struct {
	mu    sync.Mutex
	calls []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.calls...)
}

func newApp(addr string) *runnel.App {
	return runnel.New("shop", &runnel.Options{RedisURL: "redis://" + addr, LogLevel: "debug"})
}

// run runs a worker until the test ends.
func run(t *testing.T, app *runnel.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		app.Close()
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestEntitiesReachTheirFixpoint(t *testing.T) {
	servers.Both(t, func(t *testing.T, addr string, _ bool) {
		app, l := newApp(addr), &log{}
		set := stage.New(app, "listings", func(e listing) string { return e.ID }, nil)
		set.Stage("geocode", func(e listing) bool { return e.Place == "" }, func(ctx context.Context, e *listing) (stage.Result, error) {
			v, _ := stage.VisitOf(ctx)
			l.add("geocode %s %d", e.ID, v.Attempt)
			if v.Attempt == 1 && e.ID == "fails" {
				return stage.Updated, errors.New("not now")
			}
			e.Place = "Ulm"
			return stage.Updated, nil
		}, &stage.StageOptions{Retry: &runnel.Retry{Max: 3, MinBackoff: 10 * time.Millisecond}})
		set.Stage("price", func(e listing) bool { return e.Place != "" && e.Price == 0 }, func(ctx context.Context, e *listing) (stage.Result, error) {
			l.add("price %s", e.ID)
			e.Price = 7
			return stage.Updated, nil
		}, nil)
		run(t, app)
		for _, id := range []string{"a", "b", "fails"} {
			if err := set.Put(t.Context(), listing{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"a", "b", "fails"} {
			eventually(t, "priced "+id, func() bool {
				e, err := set.Get(t.Context(), id)
				return err == nil && e.Value.Place == "Ulm" && e.Value.Price == 7
			})
		}
		if got := l.all(); len(got) != 7 {
			t.Errorf("calls %q", got)
		}
	})
}

var _ = slog.Default
