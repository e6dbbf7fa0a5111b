package window_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/window"
)

type click struct {
	User  string
	Pages int
}

var began = time.UnixMilli(1_700_000_040_000) // a multiple of a minute

func at(d time.Duration) time.Time { return began.Add(d) }

type site struct {
	clicks, out *runnel.Stream[click]
	open        *runnel.Table[window.Open[int]]
	closed      []string
}

func pages(sum int, c click) int { return sum + c.Pages }

func newSite() *site {
	app := runnel.New("site", nil)
	user := func(c click) string { return c.User }
	return &site{clicks: runnel.NewStream(app, "clicks", user, nil), out: runnel.NewStream(app, "out", user, nil)}
}

func (s *site) done(ctx context.Context, w window.Window[int]) error {
	s.closed = append(s.closed, fmt.Sprintf("%s %d [%v %v]", w.Key, w.Value, w.Start.Sub(began), w.End.Sub(began)))
	return s.out.Emit(ctx, click{w.Key, w.Value})
}

func (s *site) want(t *testing.T, r *runneltest.Result, want ...string) {
	t.Helper()
	if r.Err != nil || !slices.Equal(s.closed, want) {
		t.Errorf("closed\n%q, want\n%q, %v", s.closed, want, r.Err)
	}
	if n := len(runneltest.Emitted(t, r, s.out)); n != len(want) {
		t.Errorf("%d emitted", n)
	}
}

func TestTumblingWindows(t *testing.T) {
	s := newSite()
	s.open = window.Tumbling(s.clicks, "minutes", time.Minute, pages, s.done, nil)
	r := runneltest.Events(t, s.clicks, "minutes").
		Appended(at(10*time.Second)).Records(click{"bob", 1}).
		Appended(at(59_999*time.Millisecond)).Records(click{"ada", 2}, click{"bob", 3}).
		Appended(at(time.Minute)).Records(click{"ada", 4}). // of the next window
		Quiet(at(2*time.Minute)).
		Appended(at(5*time.Minute)).Records(click{"ada", 5}, click{"ada", 6}).
		Run()
	s.want(t, r, "ada 2 [0s 1m0s]", "bob 4 [0s 1m0s]", "ada 4 [1m0s 2m0s]")
	rows := runneltest.Rows(t, r, s.open)
	if row := rows["ada"]; len(rows) != 1 || row.Value != 11 || !row.Start.Equal(at(5*time.Minute)) || !row.Last.Equal(at(5*time.Minute)) {
		t.Errorf("open %v", rows)
	}
}

func TestSessions(t *testing.T) {
	s := newSite()
	window.Session(s.clicks, "sessions", time.Minute, pages, s.done, nil)
	r := runneltest.Events(t, s.clicks, "sessions").
		Appended(at(0)).Records(click{"ada", 1}, click{"bob", 1}).
		Appended(at(59_999 * time.Millisecond)).Records(click{"ada", 1}).
		Appended(at(100 * time.Second)).Records(click{"ada", 1}).
		Appended(at(160 * time.Second)).Records(click{"ada", 1}). // a new one
		Quiet(at(219_999 * time.Millisecond)).Quiet(at(220 * time.Second)).
		Run()
	s.want(t, r, "bob 1 [0s 0s]", "ada 3 [0s 1m40s]", "ada 1 [2m40s 2m40s]")
}

// The parked event counts in the window in which it succeeds: its own has been told.
func TestAParkedEventCountsInALaterWindow(t *testing.T) {
	s := newSite()
	failed := false
	window.Tumbling(s.clicks, "minutes", time.Minute, func(sum int, c click) int {
		if c.Pages == 7 && !failed {
			failed = true
			panic("not yet")
		}
		return sum + c.Pages
	}, s.done, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, Order: runnel.OrderNone, MinBackoff: time.Hour}})
	r := runneltest.Events(t, s.clicks, "minutes").
		Appended(at(0)).Records(click{"ada", 1}, click{"ada", 7}).
		Appended(at(90 * time.Second)).Records(click{"ada", 2}).
		Quiet(at(time.Hour)).
		Run()
	s.want(t, r, "ada 1 [0s 1m0s]", "ada 9 [1m0s 2m0s]")
}

// A window whose function was given up is told by the next event of its key, apart from that event's own.
func TestAWindowThatWasKept(t *testing.T) {
	s := newSite()
	failures := 0
	window.Tumbling(s.clicks, "minutes", time.Minute, pages, func(ctx context.Context, w window.Window[int]) error {
		if failures++; failures <= 3 {
			return errors.New("not yet")
		}
		return s.done(ctx, w)
	}, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 2}})
	r := runneltest.Events(t, s.clicks, "minutes").
		Appended(at(0)).Records(click{"ada", 1}).
		Appended(at(150 * time.Second)).Records(click{"ada", 2}). // its first attempt fails, too
		Quiet(at(time.Hour)).
		Run()
	s.want(t, r, "ada 1 [0s 1m0s]", "ada 2 [2m0s 3m0s]")
}

// hidden has no field that a codec sees.
type hidden struct{ sum int }

func TestBadWindows(t *testing.T) {
	for name, f := range map[string]func(s *site){
		"size": func(s *site) { window.Tumbling(s.clicks, "w", time.Microsecond, pages, s.done, nil) },
		"part": func(s *site) { window.Tumbling(s.clicks, "w", time.Second/3, pages, s.done, nil) },
		"gap":  func(s *site) { window.Session(s.clicks, "w", -time.Second, pages, s.done, nil) },
		"add":  func(s *site) { window.Session[int](s.clicks, "w", time.Second, nil, s.done, nil) },
		"done": func(s *site) { window.Session(s.clicks, "w", time.Second, pages, nil, nil) },
		"hidden": func(s *site) {
			window.Tumbling(s.clicks, "w", time.Second, func(h hidden, c click) hidden { return hidden{h.sum + c.Pages} },
				func(context.Context, window.Window[hidden]) error { return nil }, nil)
		},
		"name": func(s *site) { window.Session(s.clicks, "a b", time.Second, pages, s.done, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(newSite())
		}()
	}
}
