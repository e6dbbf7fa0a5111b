package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A topScreen is top at a terminal of the test.
type topScreen struct {
	keys io.Writer
	out  redistest.Log
	err  redistest.Log
	end  chan error
}

func (s *shop) live(url string) *topScreen {
	s.t.Helper()
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	client, err := appview.Of(app).Client()
	if err != nil {
		s.t.Fatal(err)
	}
	in, keys := io.Pipe()
	ts := &topScreen{keys: keys, end: make(chan error, 1)}
	session := &session{program: newProgram(nil, in, &ts.out, &ts.err), client: client, admin: admin.New(app)}
	watch := inspect.NewWatch(client, "", false, topCount)
	m := newTopModel(100*time.Millisecond, "ada", false)
	sample, err := watch.Look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	m.sampled(sample, time.Now())
	ctx, cancel := context.WithCancel(s.t.Context())
	go func() { ts.end <- topLive(ctx, session, watch, m, tea.WithWindowSize(80, 24)) }()
	s.t.Cleanup(func() {
		cancel()
		keys.Close()
		client.Close()
	})
	return ts
}

func (ts *topScreen) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(ts.keys, keys); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) ruled() []inspect.RuleState {
	s.t.Helper()
	return printed[[]inspect.RuleState](s, "rules", "ls")
}

func TestTopPausesAndResumes(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	handled := s.handled()
	w := s.start("worker")
	eventually(t, "the worker is ready", func() bool { return s.app.Ready() == nil })
	top := s.live(s.url)
	top.press(t, "pw\x15no paper\ry")
	eventually(t, "a rule", func() bool { return len(s.ruled()) == 1 })
	if r := s.ruled()[0]; r.Scope != "processor:orders/printer" || r.Who != "ada" || r.Why != "no paper" || r.Until != nil {
		t.Errorf("%+v", r)
	}
	s.untyped("pause", "orders/printer", "--wait").want(t, 0, "nothing runs", "")
	s.send(1)
	top.press(t, "\r")
	top.press(t, "jpy")
	eventually(t, "another rule", func() bool { return len(s.ruled()) == 2 })
	if r := s.ruled()[0]; r.Scope != "partition:orders/printer/1" || r.Why != "top" {
		t.Errorf("%+v", r)
	}
	if len(handled) != 0 {
		t.Error("an event was handled during the pause")
	}
	// The rule can be removed once a look has shown it.
	eventually(t, "no rule of the partition", func() bool { top.press(t, "ry"); return len(s.ruled()) == 1 })
	s.untyped("resume", "orders/printer").want(t, 0, "removed", "")
	receive(t, handled, "event")
	top.press(t, "q")
	if err := receive(t, top.end, "end of top"); err != nil || top.err.String() != "" {
		t.Errorf("%v: %s", err, top.err.String())
	}
	w.stop().want(t, 0, "", "partitions paused")
}

func TestTopReleases(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 2, KeyField: "customer"})
	broken, mended := make(chan struct{}), make(chan string, 10)
	s.orders.Process("printer", runnel.Each(func(_ context.Context, _ *runnel.Event, o order) error {
		select {
		case <-broken:
			mended <- o.Customer
			return nil
		default:
			return fmt.Errorf("no paper for %s", o.Customer)
		}
	}), &runnel.ProcessorOptions{OnError: runnel.Quarantine})
	w := s.start("worker")
	eventually(t, "the worker is ready", func() bool { return s.app.Ready() == nil })
	s.send(1)
	at := -1
	eventually(t, "a quarantine", func() bool {
		at = slices.IndexFunc(s.processor().Partitions, func(p inspect.PartitionState) bool { return p.Quarantine != nil })
		return at >= 0
	})
	close(broken)
	top := s.live(s.url)
	top.press(t, "\r")
	top.press(t, strings.Repeat("j", at)+"ey")
	if got := receive(t, mended, "event"); got != "c0" {
		t.Errorf("handled %s", got)
	}
	top.press(t, "q")
	if err := receive(t, top.end, "end of top"); err != nil {
		t.Error(err)
	}
	w.stop().want(t, 0, "", "no paper")
}

// If the user quits during an act, its outcome is printed.
func TestTopPrintsTheOutcomeOfAnActAfterItsEnd(t *testing.T) {
	server := redistest.Start(t)
	s := shopAt(t, server.URL(), server.Client(t), &runnel.StreamOptions{Partitions: 2})
	client := s.client()
	if _, err := client.EnsureMeta(t.Context(), "orders", store.Meta{Partitions: 2, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"printer"}}); err != nil {
		t.Fatal(err)
	}
	top := s.live(server.URL())
	server.Freeze()
	top.press(t, "pyq")
	eventually(t, "the screen is as it was", func() bool { return strings.Contains(top.out.String(), ansi.ResetModeAltScreenSaveCursor) })
	server.Thaw()
	if err := receive(t, top.end, "end of top"); err != nil {
		t.Error(err)
	}
	if got := top.err.String(); !strings.Contains(got, ": pause of processor:orders/printer by ada since ") {
		t.Errorf("printed %q", got)
	}
	if got := s.ruled(); len(got) != 1 {
		t.Errorf("rules %+v", got)
	}
}

// top survives an absence of Redis, and ends with ctx.
func TestTopOutlivesRedis(t *testing.T) {
	server := redistest.Start(t)
	s := shopAt(t, server.URL(), server.Client(t), &runnel.StreamOptions{Partitions: 2})
	s.send(1)
	client := s.client()
	ctx, cancel := context.WithCancel(t.Context())
	msgs, ended := make(chan tea.Msg), make(chan struct{})
	go func() {
		defer close(ended)
		watchOn(ctx, inspect.NewWatch(client, "", false, 0), 10*time.Millisecond, nil, func(msg tea.Msg) { msgs <- msg })
	}()
	next := func(what string, good bool) {
		t.Helper()
		for {
			if msg := receive(t, msgs, what).(sampleMsg); (msg.err == nil) == good {
				return
			}
		}
	}
	next("sample", true)
	server.Stop()
	next("error", false)
	server.Restart()
	next("sample again", true)
	cancel()
	for range 2 { // one may be under way
		select {
		case <-msgs:
		case <-ended:
		}
	}
	receive(t, ended, "end")
}
