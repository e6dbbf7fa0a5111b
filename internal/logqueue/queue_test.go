package logqueue

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func bare(b *bytes.Buffer, level slog.Level) slog.Handler {
	return slog.NewTextHandler(b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

// stuck is a handler that blocks until it may write.
type stuck struct {
	slog.Handler
	free <-chan struct{}
}

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	<-s.free
	return s.Handler.Handle(ctx, r)
}

func (s stuck) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stuck{s.Handler.WithAttrs(attrs), s.free}
}

// A counted value counts how often it was resolved.
type counted int

func (c *counted) LogValue() slog.Value { *c++; return slog.IntValue(int(*c)) }

// Lines keep their order, the attributes and groups of their loggers, and the values of the moment
// at which they were logged.
func TestLinesKeepOrderAndForm(t *testing.T) {
	var direct, queued bytes.Buffer
	write := func(l *slog.Logger) {
		var n counted
		l.Debug("not this one")
		for i := range 100 {
			l.Info("line", "n", i)
			l.With("a", 1).WithGroup("g").With("b", 2).Warn("deep", "c", 3, slog.Group("h", "d", 4), "n", &n)
		}
	}
	write(slog.New(bare(&direct, slog.LevelInfo)))
	q := New(bare(&queued, slog.LevelInfo))
	write(q.Logger())
	q.Close()
	if direct.String() != queued.String() {
		t.Errorf("queued:\n%s\nwant:\n%s", queued.String(), direct.String())
	}
}

// Logging never blocks. Lines without room are dropped, and counted when the handler continues.
func TestAStuckLogHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		free := make(chan struct{})
		q := New(stuck{bare(&b, slog.LevelInfo), free}, slog.String("app", "shop"))
		log := q.Logger()
		log.Info("line", "n", -1)
		synctest.Wait() // the handler has it
		began := time.Now()
		for n := range limit + 7 {
			log.With("n", n).Info("line")
		}
		q.mu.Lock()
		waiting := len(q.lines)
		q.mu.Unlock()
		if took := time.Since(began); took > 0 || waiting != limit {
			t.Errorf("logging took %v, and %d lines wait", took, waiting)
		}
		close(free)
		synctest.Wait()
		log.Info("after")
		q.Close()
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != limit+3 {
			t.Fatalf("%d lines", len(lines))
		}
		if want := fmt.Sprintf("level=INFO msg=line n=%d", limit-1); lines[limit] != want {
			t.Errorf("the last line before the gap is %q, want %q", lines[limit], want)
		}
		if want := `level=WARN msg="log lines dropped" app=shop lines=7 help="see docs/troubleshooting.md#log-lines-dropped"`; lines[limit+1] != want {
			t.Errorf("of the gap is told by %q, want %q", lines[limit+1], want)
		}
	})
}

// Close writes what it can and gives up on a handler that is stuck.
func TestCloseIsBounded(t *testing.T) {
	tests := []struct {
		name        string
		each        time.Duration // that the handler takes for a line
		lines       int
		least, most time.Duration
		written     int
	}{
		{"nothing", 0, 0, 0, 0, 0},
		{"quick", time.Millisecond, 100, 100 * time.Millisecond, 100 * time.Millisecond, 100},
		{"slow", 100 * time.Millisecond, 1000, flushPatience, flushPatience, 19},
		{"still", time.Hour, 1, flushStall, 2 * flushStall, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &slow{each: tt.each, ended: make(chan struct{})}
				q := New(h)
				for range tt.lines {
					q.Logger().Info("line")
				}
				began := time.Now()
				q.Close()
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("Close took %v, want %v to %v", took, tt.least, tt.most)
				}
				q.mu.Lock()
				written := q.written
				q.mu.Unlock()
				if written < tt.written || written > tt.written+1 {
					t.Errorf("%d lines were written, want %d", written, tt.written)
				}
				close(h.ended)
			})
		})
	}
}

type slow struct {
	slog.Handler
	each  time.Duration
	ended chan struct{}
}

func (h *slow) Enabled(context.Context, slog.Level) bool { return true }

func (h *slow) Handle(context.Context, slog.Record) error {
	timer := time.NewTimer(h.each)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.ended:
	}
	return nil
}

func TestADisabledLevelAllocatesNothing(t *testing.T) {
	var b bytes.Buffer
	q := New(bare(&b, slog.LevelInfo))
	defer q.Close()
	log := q.Logger().With("app", "shop")
	if n := testing.AllocsPerRun(100, func() { log.Debug("line", "partition", 3) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
