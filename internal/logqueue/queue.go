// Package logqueue lets goroutines log without waiting for a slow handler.
//
// A slog.Handler writes while its caller waits, and most handlers hold a mutex meanwhile.
// When nothing reads the pipe behind the handler, every goroutine that logs stands still.
package logqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
)

const (
	// limit is how many lines wait at most, besides as many that are being written: enough for a
	// start with 1 024 partitions.
	limit = 4096
	// flushPatience bounds Close, and flushStall the wait for one line then.
	flushPatience = 2 * time.Second
	flushStall    = 250 * time.Millisecond
)

// A Queue passes lines to a handler in order, from its own goroutine. Lines without room are
// dropped; their number is logged when there is room again.
type Queue struct {
	to    slog.Handler
	attrs []slog.Attr // of the line with the number of dropped lines

	mu      sync.Mutex
	lines   []line
	dropped int
	written int           // lines that the handler has returned from
	closed  bool          // lines go to the handler directly
	wake    chan struct{} // there are lines, or the queue was closed; one token
	ended   chan struct{} // closed when the goroutine has ended; nil: it was not needed yet
}

type line struct {
	to     slog.Handler // with the attributes and groups of the logger
	ctx    context.Context
	record slog.Record
}

// New returns a queue in front of a handler. attrs belong to the line with the number of
// dropped lines.
func New(to slog.Handler, attrs ...slog.Attr) *Queue {
	return &Queue{to: to, attrs: attrs, wake: make(chan struct{}, 1)}
}

// Logger returns a logger whose calls never wait. The handler gets each record and its context from
// another goroutine.
func (q *Queue) Logger() *slog.Logger { return slog.New(handler{q, q.to}) }

// Close waits, at most two seconds, until the lines are written, as long as the handler makes
// progress. Later lines are passed on at once.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	ended := q.ended
	q.mu.Unlock()
	if ended == nil {
		return
	}
	q.signal()
	limit := time.NewTimer(flushPatience)
	defer limit.Stop()
	stall := time.NewTicker(flushStall)
	defer stall.Stop()
	for before := -1; ; {
		select {
		case <-ended:
			return
		case <-limit.C:
			return
		case <-stall.C:
			q.mu.Lock()
			now := q.written
			q.mu.Unlock()
			if now == before {
				return
			}
			before = now
		}
	}
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues a line. It reports false when the queue is closed.
func (q *Queue) add(l line) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false
	case len(q.lines) >= limit:
		q.dropped++
		return true
	}
	q.lines = append(q.lines, l)
	if q.ended == nil {
		q.ended = make(chan struct{})
		go q.run(q.ended) // Close waits for it, unless it hangs in the handler
	}
	q.signal()
	return true
}

func (q *Queue) run(ended chan<- struct{}) {
	defer close(ended)
	for {
		q.mu.Lock()
		lines, dropped, closed := q.lines, q.dropped, q.closed
		q.lines = nil
		q.dropped = 0
		q.mu.Unlock()
		for _, l := range lines {
			_ = l.to.Handle(l.ctx, l.record) // as slog.Logger does
			q.mu.Lock()
			q.written++
			q.mu.Unlock()
		}
		switch {
		case dropped > 0:
			q.tell(dropped)
		case len(lines) > 0:
		case closed:
			return
		default:
			<-q.wake
		}
	}
}

// tell logs how many lines were dropped.
func (q *Queue) tell(dropped int) {
	if !q.to.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines dropped", 0)
	r.AddAttrs(q.attrs...)
	r.AddAttrs(slog.Int("lines", dropped), slog.String("help", help.LogLinesDropped))
	_ = q.to.Handle(context.Background(), r)
}

// A handler is the Queue with the attributes and groups of one logger.
type handler struct {
	q  *Queue
	to slog.Handler
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool { return h.to.Enabled(ctx, level) }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if h.q.add(line{h.to, ctx, settled(r)}) {
		return nil
	}
	return h.to.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.q, h.to.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.q, h.to.WithGroup(name)} }

// settled returns a record that may be kept: values that are computed when logged are computed now.
func settled(r slog.Record) slog.Record {
	late := false
	r.Attrs(func(a slog.Attr) bool {
		late = a.Value.Kind() == slog.KindLogValuer
		return !late
	})
	if !late {
		return r.Clone()
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(slog.Attr{Key: a.Key, Value: a.Value.Resolve()})
		return true
	})
	return out
}
