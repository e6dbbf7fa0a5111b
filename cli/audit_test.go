package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
)

// Flags work before the command, behind it, and after its arguments.
func TestFlagsWorkEverywhereOfEveryCommand(t *testing.T) {
	s := owned(t, 4)
	path := file(t, "a.ndjson", jsonLines(2))
	for _, tt := range []struct{ command, args, flag string }{
		{"send", `orders {"customer":"ada"}`, "--output json"},
		{"send", `orders {"customer":"ada"}`, "--output=json"},
		{"send", `orders {"customer":"ada"}`, "--key eve --output json"},
		{"sendmany", "orders " + path, "--output json"},
		{"sendmany", "orders " + path, "--stop-on-error --output json"},
		{"status", "orders/printer", "--output json"},
		{"processor reset", "orders/printer", "--to start --yes --output json"},
		{"pause", "orders/printer", "--partition 1 --why repair --for 1m --output json"},
		{"resume", "orders/printer", "--partition 1 --output json"},
		{"rules ls", "", "--output json"},
		{"parked ls", "orders/printer", "--key ada --partition 1 --output json"},
		{"parked retry", "orders/printer", "--limit 1 --output json"},
		{"parked drop", "orders/printer", "--all --output json"},
		{"dead ls", "orders/printer", "--since 1h --error text --output json"},
		{"dead show", "orders/printer", "--id 1/1-1 --output json"},
		{"dead replay", "orders/printer", "--dry-run --output json"},
		{"dead drop", "orders/printer", "--all --output=json"},
		{"version", "", "--output json"},
	} {
		for _, line := range []string{
			tt.flag + " " + tt.command + " " + tt.args,
			tt.command + " " + tt.flag + " " + tt.args,
			tt.command + " " + tt.args + " " + tt.flag,
		} {
			for name, run := range map[string]func(...string) result{"app": s.run, "runnel": s.untyped} {
				r := run(strings.Fields(line)...)
				if r.code != 0 || !json.Valid([]byte(r.out)) {
					t.Errorf("%s: %s: %+v", name, line, r)
				}
			}
		}
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
		`INFO  leader app=shop worker=\S+\n`,
		`INFO  partitions gained app=shop worker=\S+ stream=orders processor=printer .*partitions=0`,
		`INFO  partitions released app=shop worker=\S+ stream=orders processor=printer .*partitions=`,
		`WARN  error ignored app=shop worker=\S+ stream=orders processor=printer .*partition=\d .*panic: no paper`,
		`ERROR task: error app=shop worker=\S+ task=lead .*panic: no crown`,
	} {
		if !regexp.MustCompile(want).MatchString(r.err) {
			t.Errorf("no %s in\n%s", want, r.err)
		}
	}
}

// In text, a reset prints a line per partition: where it was, where it is.
func TestResetPrintsOldAndNew(t *testing.T) {
	s := owned(t, 10)
	before := s.processor()
	r := s.untyped("processor", "reset", "--yes", "orders/printer", "--start", "start")
	r.want(t, 0, "PARTITION", "")
	for _, p := range before.Partitions {
		want := regexp.MustCompile(`(?m)^` + string(rune('0'+p.Partition)) + ` +` + regexp.QuoteMeta(p.Floor) + ` +→ +0-0`)
		if !want.MatchString(r.out) {
			t.Errorf("no %s in\n%s", want, r.out)
		}
	}
}

// The variables that the flags of every command stand for, and their order.
func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	s := newShop(t, nil)
	s.send(1)
	t.Setenv("RUNNEL_LOG_FORMAT", "json")
	t.Setenv("RUNNEL_LOG_LEVEL", "error")
	w := s.start("worker", "--log-level", "debug")
	eventually(t, "ready", func() bool { return s.app.Ready() == nil })
	if r := w.stop(); !strings.Contains(r.err, `{"time":`) || !strings.Contains(r.err, `"level":"INFO"`) {
		t.Errorf("the log is not JSON of all levels:\n%s", r.err)
	}
	t.Setenv("RUNNEL_REDIS_URL", "redis://127.0.0.1:1")
	s.untyped("status").want(t, 1, "", "no Redis at 127.0.0.1:1")
	s.untyped("status", "--redis-url", s.url).want(t, 0, "stream orders", "")
	t.Setenv("RUNNEL_LOG_LEVEL", "loud")
	s.untyped("status", "--redis-url", s.url).want(t, 1, "", `environment variable RUNNEL_LOG_LEVEL="loud"`)
	t.Setenv("RUNNEL_LOG_LEVEL", "")
	t.Setenv("RUNNEL_APP", "shop")
	run(t.Context(), nil, "", "status", "--redis-url", s.url).want(t, 0, "app shop", "")
}
