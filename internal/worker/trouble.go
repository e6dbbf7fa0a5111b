package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// trouble is the state of something that is tried again until it works: it
// pauses between tries, longer each time and with jitter, and logs when trouble
// begins, every minute while it lasts, and when it is over. Use by one
// goroutine.
type trouble struct {
	log    *slog.Logger
	what   string
	errs   *atomic.Int64
	pause  time.Duration
	since  int64 // 0: none
	logged int64
	tries  int
}

// newTrouble returns one without trouble. Errors that it waits for are counted in
// errs, unless that is nil.
func newTrouble(log *slog.Logger, what string, errs *atomic.Int64) *trouble {
	return &trouble{log: log, what: what, errs: errs}
}

// note notes an error, without a pause.
func (t *trouble) note(ctx context.Context, err error) {
	now := mono()
	if t.since == 0 {
		t.since, t.pause = now, firstPause
	}
	t.tries++
	if t.errs != nil && ctx.Err() == nil {
		t.errs.Add(1)
	}
	if ctx.Err() == nil && (t.logged == 0 || now-t.logged > int64(time.Minute)) {
		t.log.Warn(t.what+": trouble, trying again until it works", "tries", t.tries, "err", err)
		t.logged = now
	}
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
	if t.since == 0 {
		return
	}
	t.log.Info(t.what+": works again", "tries", t.tries, "after", time.Duration(mono()-t.since))
	*t = trouble{log: t.log, what: t.what, errs: t.errs}
}
