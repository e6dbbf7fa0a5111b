package runneltest

import (
	"context"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/prefetch"
)

// end is a way in which an ownership ends.
type end int

const (
	goesOn end = iota
	released
	shutdown
	lost
)

func (e end) cause() error {
	switch e {
	case lost:
		return runnel.ErrLost
	case shutdown:
		return runnel.ErrShutdown
	}
	return runnel.ErrReleased
}

// life is how far an ownership has come. Its methods may be called concurrently.
type life struct {
	buffer *prefetch.Buffer
	grace  time.Duration
	cancel context.CancelCauseFunc
	ending chan struct{}

	mu    sync.Mutex
	over  bool
	gone  bool        // lost
	timer *time.Timer // its end, then the end of its grace; nil: neither is known
}

func (l *life) Live() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over
}

func (l *life) Holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.gone
}

// end begins the end of the ownership, once.
func (l *life) end(e end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.ending)
	l.buffer.Close()
	if e == lost {
		l.gone = true
		l.cancel(e.cause())
		return
	}
	l.after(l.grace, func() { l.cancel(e.cause()) })
}

// endAfter begins the end of the ownership later.
func (l *life) endAfter(d time.Duration, e end) {
	if d <= 0 {
		l.end(e)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.after(d, func() { l.end(e) })
	}
}

// after calls fn later, instead of what was to be called; mu is held.
func (l *life) after(d time.Duration, fn func()) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(d, fn)
}

// stop ends what is left of the ownership: its consumer has returned.
func (l *life) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// sleep waits for d, or until the ownership begins to end.
func (l *life) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.ending:
	case <-timer.C:
	}
}
