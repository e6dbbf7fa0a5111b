package cli

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestConsole(t *testing.T) {
	var out redistest.Log
	log := slog.New(newConsole(&out, slog.LevelInfo)).With("app", "shop").WithGroup("g").With("a", 1)
	log.Debug("unseen")
	log.Warn(`say "hi"`, "level", "high", "msg", "x y", "time", time.Second)
	_, text, _ := strings.Cut(out.String(), "WARN")
	if want := "  say \"hi\" app=shop g.a=1 g.level=high g.msg=\"x y\" g.time=1s\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// The app's own logger stays, unless a log flag is set.
func TestLoggerOfTheApp(t *testing.T) {
	server := redistest.Start(t)
	t.Setenv("RUNNEL_REDIS_URL", server.URL())
	var own redistest.Log
	app := runnel.New("shop", &runnel.Options{Logger: slog.New(slog.NewTextHandler(&own, nil))})
	defer app.Close()
	started := make(chan struct{}, 1)
	app.Task("started", func(context.Context) error { started <- struct{}{}; return nil }, nil)
	worker := func(args ...string) string {
		w := (&shop{t: t, app: app}).start(append(args, "worker")...)
		receive(t, started, "task")
		r := w.stop()
		if r.code != 0 {
			t.Errorf("%+v", r)
		}
		return r.err
	}
	if text := worker(); text != "" || !strings.Contains(own.String(), "worker stopped") {
		t.Errorf("stderr %q, own log %q", text, own.String())
	}
	if text := worker("--log-format", "text"); !strings.Contains(text, "worker stopped") {
		t.Errorf("stderr %q", text)
	}
}
