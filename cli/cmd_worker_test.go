package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestWorkerDrains(t *testing.T) {
	s := newShop(t, nil)
	handled := s.handled()
	s.sends(order{Customer: "ada"})
	w := s.start("worker", "--processors", "orders/printer")
	if got := receive(t, handled, "event"); got != "ada" {
		t.Errorf("handled %s", got)
	}
	r := w.stop()
	r.want(t, 0, "", "partitions gained")
	if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO  worker started app=shop worker=\S+ redis=`).MatchString(r.err) {
		t.Errorf("log:\n%s", r.err)
	}
}

func TestAWorkerWithNothingToRunSaysSo(t *testing.T) {
	s := newShop(t, nil)
	w := s.start("worker")
	eventually(t, "a warning", func() bool { return strings.Contains(w.err.String(), "WARN  nothing to run") })
	w.stop().want(t, 0, "", "worker stopped")
}

func TestDevShowsTheStreamOfTheFirstProcessor(t *testing.T) {
	app := newShopApp()
	defer app.Close()
	later := runnel.NewStream(app, "zones", func(o order) string { return o.Customer }, nil)
	s := &session{reg: appview.Of(app)}
	for i, want := range []string{"send orders ", "send zones "} {
		if got := sampleSend(s.reg); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		later.Process(fmt.Sprint("printer", i), runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	}
}

func TestWorkerLogsJSON(t *testing.T) {
	s := newShop(t, nil)
	handled := s.handled()
	s.sends(order{Customer: "ada"})
	w := s.start("--log-format", "json", "worker", "--log-level", "debug")
	receive(t, handled, "event")
	debug := false
	for l := range strings.Lines(w.stop().err) {
		var line struct{ Level, Msg, App string }
		if err := json.Unmarshal([]byte(l), &line); err != nil || line.App != "shop" || line.Msg == "" {
			t.Errorf("%q: %v", l, err)
		}
		debug = debug || line.Level == "DEBUG"
	}
	if !debug {
		t.Error("no line of level debug")
	}
}

func TestWorkerErrorsAreOneLine(t *testing.T) {
	s := newShop(t, nil)
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			return errors.Join(errors.New("no paper"), errors.New("no ink"))
		}
		return nil
	}, nil)
	s.orders.Process("stamper", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			panic("no stamp")
		}
		return nil
	}, nil)
	s.sends(order{Customer: "ada"})
	for name, want := range map[string]string{"printer": "no paper; no ink", "stamper": "panic: no stamp"} {
		r := s.run("worker", "--processors", name)
		r.want(t, 1, "", want)
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		last := lines[len(lines)-1]
		if !strings.Contains(last, want+"; mend what fails") || !strings.Contains(last, "stream orders partition") || !strings.Contains(lines[len(lines)-2], "worker stopped") {
			t.Errorf("%s: the last lines are\n%s", name, strings.Join(lines[len(lines)-2:], "\n"))
		}
	}
	s.run("worker", "--processors", "nope").want(t, 1, "", `no processor "nope"; there are orders/printer, orders/stamper`)
}

// What a user's function cannot reach is not the server.
func TestWorkerTellsAForeignNetworkError(t *testing.T) {
	s := newShop(t, nil)
	s.orders.Process("printer", func(_ context.Context, events *runnel.Events[order]) error {
		for range events.Records() {
			return fmt.Errorf("call the printer: %w", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")})
		}
		return nil
	}, nil)
	s.sends(order{Customer: "ada"})
	r := s.run("worker")
	r.want(t, 1, "", "call the printer: dial tcp: refused")
	if strings.Contains(r.err, "no Redis") {
		t.Errorf("blames the server: %s", r.err)
	}
}

func TestWrongPassword(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	r := run(t.Context(), newShopApp(), "", "worker", "--redis-url", "redis://:geheim@"+server.Addr())
	r.want(t, 1, "", "wrong user name or password")
	if strings.Contains(r.err, "geheim") {
		t.Errorf("shows the password: %s", r.err)
	}
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "redis://"+server.Addr()).want(t, 1, "", "a password is required")
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "redis://localhost:port").want(t, 1, "", `redis URL "redis://***" is malformed; want redis://host:6379`)
	run(t.Context(), newShopApp(), "", "status", "--redis-url", "nonsense").want(t, 1, "", `redis URL "***" is malformed`)
}

func TestDev(t *testing.T) {
	s := shopAt(t, "redis://127.0.0.1:1", nil, nil) // --dev goes before the environment
	handled := s.handled()
	w := s.start("worker", "--dev")
	line := regexp.MustCompile(`RUNNEL_REDIS_URL=(redis://127\.0\.0\.1:\d+) (.+) send orders '(\{"customer":"","amount":0\})'`)
	eventually(t, "the line to type", func() bool { return line.MatchString(w.err.String()) })
	m := line.FindStringSubmatch(w.err.String())
	for _, want := range []string{"the server of RUNNEL_REDIS_URL is not used", " worker --redis-url " + m[1] + "\n"} {
		eventually(t, want, func() bool { return strings.Contains(w.err.String(), want) })
	}
	t.Setenv("RUNNEL_REDIS_URL", m[1])
	second := newShopApp()
	defer second.Close()
	eventually(t, "metadata", func() bool {
		return run(t.Context(), second, "", "send", "orders", m[3]).code == 0
	})
	if got := receive(t, handled, "event"); got != "" {
		t.Errorf("handled %q", got)
	}
	run(t.Context(), second, "", "status", "orders").want(t, 0, "processor orders/printer: generation", "")
	w.stop().want(t, 0, "", "data is lost on exit")
	run(t.Context(), newShopApp(), "", "status").want(t, 1, "", "no Redis at "+strings.TrimPrefix(m[1], "redis://"))
}

func TestDevTakesAFreePort(t *testing.T) {
	if l, err := net.Listen("tcp", devAddr); err == nil {
		defer l.Close() // else another program has the port already
	}
	r := run(t.Context(), newShopApp(), "", "send", "orders", "{}", "--dev")
	r.want(t, 0, "orders ", "no worker sees it")
	if strings.Contains(r.err, devAddr+";") {
		t.Errorf("took a port that is taken: %s", r.err)
	}
}

func TestASecondDevWorkerSaysThatItSharesNothing(t *testing.T) {
	if l, err := net.Listen("tcp", devAddr); err == nil {
		defer l.Close() // else another program has the port already
	}
	t.Setenv("RUNNEL_REDIS_URL", "")
	s := newShopApp()
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := run(ctx, s, "", "worker", "--dev")
	if !strings.Contains(r.err, "another server has 127.0.0.1:6379, and this worker shares nothing with it; to share its events, run worker without --dev") ||
		strings.Contains(r.err, "RUNNEL_REDIS_URL is not used") {
		t.Errorf("%+v", r)
	}
}

func TestDevLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "shop": "shop", "/usr/bin/shop": "/usr/bin/shop", `{"a":1}`: `'{"a":1}'`, "it's": `'it'\''s'`, "a b": "'a b'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

// A logger in the app's own options stays, unless a flag says how to log.
func TestLoggerOfTheApp(t *testing.T) {
	server := redistest.Start(t)
	t.Setenv("RUNNEL_REDIS_URL", server.URL())
	var own syncBuffer
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

func TestConsole(t *testing.T) {
	var out syncBuffer
	log := slog.New(newConsole(&out, slog.LevelInfo)).With("app", "shop").WithGroup("g").With("a", 1)
	log.Debug("unseen")
	log.Warn(`say "hi"`, "level", "high", "msg", "x y", "time", time.Second)
	_, text, _ := strings.Cut(out.String(), "WARN")
	if want := "  say \"hi\" app=shop g.a=1 g.level=high g.msg=\"x y\" g.time=1s\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestVersion(t *testing.T) {
	run(t.Context(), newShopApp(), "", "version").want(t, 0, ", runnel ", "")
	r := run(t.Context(), nil, "", "version", "--output", "json")
	if v := parse[versions](t, r); v.Runnel == "" || !strings.HasPrefix(v.Go, "go1.") || v.Version == "" {
		t.Errorf("%+v", v)
	}
}

// --processors takes several, with commas, also before the command.
func TestWorkerRunsTheProcessorsThatAreNamed(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	seen := make(chan string, 10)
	for _, name := range []string{"a", "b", "c"} {
		s.orders.Process(name, runnel.Each(func(context.Context, *runnel.Event, order) error { seen <- name; return nil }), nil)
	}
	s.send(1)
	w := s.start("--processors", "orders/a, c", "worker")
	got := map[string]bool{receive(t, seen, "event"): true, receive(t, seen, "event"): true}
	w.stop().want(t, 0, "", "worker stopped")
	if !got["a"] || !got["c"] || len(seen) != 0 {
		t.Errorf("ran %v and %d more", got, len(seen))
	}
}

// A worker logs what it gained and gave back, that it leads, and failures.
func TestWorkerLogsWhatHappens(t *testing.T) {
	s := newShop(t, &runnel.StreamOptions{Partitions: 1})
	led := make(chan struct{})
	s.app.Task("lead", func(context.Context) error { close(led); panic("no crown") }, &runnel.TaskOptions{Leader: true})
	failed := make(chan struct{}, 10)
	s.orders.Process("printer", runnel.Each(func(context.Context, *runnel.Event, order) error {
		failed <- struct{}{}
		panic("no paper")
	}), &runnel.ProcessorOptions{OnError: runnel.Ignore})
	s.send(1)
	w := s.start("worker")
	receive(t, led, "leader")
	receive(t, failed, "failure")
	r := w.stop()
	for _, want := range []string{
		`INFO  leadership gained app=shop worker=\S+\n`,
		`INFO  partitions gained app=shop worker=\S+ stream=orders processor=printer .*partitions=0`,
		`INFO  partitions released app=shop worker=\S+ stream=orders processor=printer .*partitions=`,
		`WARN  error ignored app=shop worker=\S+ stream=orders processor=printer .*partition=\d .*panic: no paper`,
		`ERROR task failed app=shop worker=\S+ task=lead .*panic: no crown`,
	} {
		if !regexp.MustCompile(want).MatchString(r.err) {
			t.Errorf("no %s in\n%s", want, r.err)
		}
	}
}
