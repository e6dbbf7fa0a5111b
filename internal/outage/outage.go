// Package outage retries an operation until it works, with growing pauses and few log lines.
package outage

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
)

const (
	// linesApart is the least time between two lines about the beginning of an outage.
	linesApart    = 10 * time.Second
	shortestPause = 20 * time.Millisecond
	longestPause  = time.Second
)

// An Outage is the state of one operation that is retried until it works. It pauses between tries,
// longer each time and with jitter. It logs when errors begin, once a minute while they last, and
// when they end. Intermittent errors are logged once in ten seconds, with their number. An Outage
// is for one goroutine.
type Outage struct {
	log    *slog.Logger
	op     string
	errs   *atomic.Int64
	pause  time.Duration
	since  int64 // 0: it works
	told   bool  // the outage that lasts is in the log
	logged int64 // when a beginning was logged last; 0: never
	breaks int   // how many have begun since
	tries  int
}

// New returns the Outage of an operation that works. Errors are counted in errs, unless that is nil.
func New(log *slog.Logger, op string, errs *atomic.Int64) *Outage {
	return &Outage{log: log, op: op, errs: errs}
}

// Retry calls do until it succeeds or ctx has ended, with the pauses and the lines of an Outage.
func Retry(ctx context.Context, log *slog.Logger, op string, do func() error) {
	err := do()
	if err == nil {
		return
	}
	for o := New(log, op, nil); ctx.Err() == nil; {
		o.Wait(ctx, err)
		if err = do(); err == nil {
			o.Recovered()
			return
		}
	}
}

// Failed records an error, without a pause. An error that ctx has caused is not logged.
func (t *Outage) Failed(ctx context.Context, err error) {
	now := monotime.Now()
	if t.since == 0 {
		t.since, t.pause = now, shortestPause
		t.breaks++
	}
	t.tries++
	if ctx.Err() != nil {
		return
	}
	if t.errs != nil {
		t.errs.Add(1)
	}
	apart := linesApart
	if t.told {
		apart = time.Minute
	}
	if t.logged == 0 || now-t.logged >= int64(apart) {
		t.line(slog.LevelWarn, "redis error, retrying", slog.Int("attempt", t.tries), slog.Any("err", err), slog.String("help", help.RedisErrors))
		t.logged, t.told, t.breaks = now, true, 0
	}
}

// line logs, with the number of outages since the last line if there were several.
func (t *Outage) line(level slog.Level, message string, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("op", t.op)}, attrs...)
	if t.breaks > 1 {
		attrs = append(attrs, slog.Int("breaks", t.breaks))
	}
	t.log.LogAttrs(context.Background(), level, message, attrs...)
}

// Wait records an error and pauses; it returns early when ctx ends.
func (t *Outage) Wait(ctx context.Context, err error) {
	t.Failed(ctx, err)
	pause := t.pause/2 + rand.N(t.pause)
	t.pause = min(2*t.pause, longestPause)
	monotime.Sleep(ctx, pause)
}

// Recovered ends the outage, if there was one.
func (t *Outage) Recovered() {
	if t.since == 0 && t.breaks == 0 {
		return
	}
	now := monotime.Now()
	switch lasted := t.since != 0; {
	case lasted && t.told:
		t.line(slog.LevelInfo, "recovered", slog.Int("attempt", t.tries), slog.Duration("after", time.Duration(now-t.since)))
	case !lasted && now-t.logged >= int64(linesApart):
		t.line(slog.LevelInfo, "recovered")
		t.logged, t.breaks = now, 0
	}
	t.since, t.tries, t.told = 0, 0, false
}
