package middleware_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
	"github.com/runnel-go/runnel/runneltest"
)

func TestLogSaysWhereAndWhat(t *testing.T) {
	var out bytes.Buffer
	plain := slog.NewTextHandler(&out, nil)
	for name, logger := range map[string]*slog.Logger{
		"plain": slog.New(plain), "already a LogHandler": slog.New(runnel.LogHandler(plain)).With("more", 1),
	} {
		out.Reset()
		s := stream(refuse, runnel.Ignore, middleware.Log(logger))
		got := runneltest.Events(t, s, "p").Partition(5).Records(Order{"a", 1}, Order{"a", -1}).Run()
		wantAcked(t, got, "1-0", "2-0")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level=INFO msg=processed") || !strings.Contains(lines[1], `level=ERROR msg="not processed"`) ||
			!strings.Contains(lines[1], "failed=1 err=refund") {
			t.Fatalf("%s: %s", name, out.String())
		}
		for i, line := range lines {
			for _, attr := range []string{"stream=orders", "processor=p", "partition=5", "events=1", []string{"event=5/1-0", "event=5/2-0"}[i]} {
				if strings.Count(line, attr) != 1 {
					t.Errorf("%s: %q not once in %s", name, attr, line)
				}
			}
		}
	}
}

func TestLogWithTheDefaultLogger(t *testing.T) {
	s := stream(refuse, runnel.Halt, middleware.Log(nil))
	before := slog.Default()
	defer slog.SetDefault(before)
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil))) // after the registration
	runneltest.Process(t, s, "p", Order{"a", 1})
	if !strings.Contains(out.String(), "event=0/1-0") {
		t.Errorf("logged %q", out.String())
	}
}
