package cli

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/stage"
)

func TestDev(t *testing.T) {
	s := shopAt(t, "redis://127.0.0.1:1", nil, nil) // --dev takes precedence over the environment
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

func TestDevShowsTheStreamOfTheFirstProcessor(t *testing.T) {
	app := newShopApp()
	defer app.Close()
	later := runnel.NewStream(app, "zones", func(o order) string { return o.Customer }, nil)
	s := &session{reg: appview.Of(app)}
	for i, want := range []string{"send orders ", "send zones "} {
		if _, got := sampleCommand(s.reg); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		later.Process(fmt.Sprint("printer", i), runnel.Each(func(context.Context, *runnel.Event, order) error { return nil }), nil)
	}
	sets := runnel.New("market", nil)
	defer sets.Close()
	stage.New(sets, "listings", func(o order) string { return o.Customer }, nil)
	if what, got := sampleCommand(appview.Of(sets)); what != "look" || got != "status" {
		t.Errorf("of an app of sets: to %s, %s", what, got)
	}
}
