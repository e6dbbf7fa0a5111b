package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// troubleApart is the least time between two lines that tell that the same trouble begins.
const troubleApart = 10 * time.Second

// trouble is the state of something that is tried again until it works: it
// pauses between tries, longer each time and with jitter, and logs when trouble
// begins, every minute while it lasts, and when it is over. Where it comes and goes it
// logs once in troubleApart, and how often it came. Use by one goroutine.
type trouble struct {
	log    *slog.Logger
	what   string
	errs   *atomic.Int64
	pause  time.Duration
	since  int64 // 0: none
	told   bool  // the log has the one that lasts
	logged int64 // when a trouble was logged last; 0: never
	breaks int   // how many have begun since
	tries  int
}

// newTrouble returns one without trouble. Errors that it waits for are counted in
// errs, unless that is nil.
func newTrouble(log *slog.Logger, what string, errs *atomic.Int64) *trouble {
	return &trouble{log: log, what: what, errs: errs}
}

// note notes an error, without a pause.
func (t *trouble) note(ctx context.Context, err error) {
	now := monotime.Now()
	if t.since == 0 {
		t.since, t.pause = now, firstPause
		t.breaks++
	}
	t.tries++
	if ctx.Err() != nil {
		return
	}
	if t.errs != nil {
		t.errs.Add(1)
	}
	apart := troubleApart
	if t.told {
		apart = time.Minute
	}
	if t.logged == 0 || now-t.logged >= int64(apart) {
		t.log.LogAttrs(context.Background(), slog.LevelWarn, t.what+": trouble, trying again until it works", t.counted(slog.Int("tries", t.tries), slog.Any("err", err))...)
		t.logged, t.told, t.breaks = now, true, 0
	}
}

// counted adds how often the trouble has come since the last line, if more than once.
func (t *trouble) counted(attrs ...slog.Attr) []slog.Attr {
	if t.breaks > 1 {
		attrs = append(attrs, slog.Int("breaks", t.breaks))
	}
	return attrs
}

// wait notes an error and pauses; it returns early when ctx ends.
func (t *trouble) wait(ctx context.Context, err error) {
	t.note(ctx, err)
	timer := time.NewTimer(t.pause/2 + rand.N(t.pause))
	defer timer.Stop()
	t.pause = min(2*t.pause, lastPause)
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// over notes that it worked.
func (t *trouble) over() {
	if t.since == 0 && t.breaks == 0 {
		return
	}
	now := monotime.Now()
	switch lasted := t.since != 0; {
	case lasted && t.told:
		t.log.Info(t.what+": works again", "tries", t.tries, "after", time.Duration(now-t.since))
	case !lasted && now-t.logged >= int64(troubleApart):
		t.log.LogAttrs(context.Background(), slog.LevelInfo, t.what+": works again", t.counted()...)
		t.logged, t.breaks = now, 0
	}
	t.since, t.tries, t.told = 0, 0, false
}
