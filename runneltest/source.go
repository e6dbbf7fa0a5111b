package runneltest

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/rstream"
	"github.com/runnel-go/runnel/internal/worker"
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

// arrival is an entry, or the end of the ownership when everything before it has
// been taken.
type arrival struct {
	at    time.Duration // since began
	entry rstream.Entry
	end   end
}

// startFailures is how often a function may fail before its first event.
const startFailures = 3

// source is a worker.Source whose entries come from a script. What the script
// says of time is time: nothing arrives early.
type source struct {
	t         testing.TB
	partition int
	epoch     int64
	script    []arrival
	given     []string

	began  time.Time
	grace  time.Duration
	cancel context.CancelCauseFunc
	ending chan struct{}
	timers []*time.Timer // guarded by mu

	mu       sync.Mutex
	next     int // in script
	over     bool
	gone     bool
	taken    []string
	acked    []string
	open     []string // taken, not acked
	ignored  int
	failures int
	errs     []error
	stopped  error
}

var _ worker.Source = (*source)(nil)

func (s *source) start(grace time.Duration, cancel context.CancelCauseFunc) {
	s.began, s.grace, s.cancel = time.Now(), grace, cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow()
}

func (s *source) Partition() int             { return s.partition }
func (s *source) Epoch() int64               { return s.epoch }
func (s *source) Redelivered(id string) bool { return slices.Contains(s.given, id) }
func (s *source) Ending() <-chan struct{}    { return s.ending }

func (s *source) Holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone
}

func (s *source) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// Take follows the script: it waits for the first entry to arrive, and then for
// n of them or for within to pass, but not for what never comes.
func (s *source) Take(n int, within time.Duration) ([]rstream.Entry, error) {
	if n < 1 || within < 0 {
		s.t.Errorf("runneltest: Take(%d, %v)", n, within)
	}
	for {
		s.mu.Lock()
		if s.over {
			s.mu.Unlock()
			return nil, io.EOF
		}
		wait := s.wait(n, within)
		if wait <= 0 {
			out := s.pop(n)
			s.mu.Unlock()
			if out == nil {
				return nil, io.EOF
			}
			return out, nil
		}
		s.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-s.ending:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wait is how long a batch of n is not complete; mu is held.
func (s *source) wait(n int, within time.Duration) time.Duration {
	if s.next == len(s.script) {
		return 0
	}
	first := s.script[s.next]
	if first.end != goesOn {
		return time.Minute // a timer ends the wait
	}
	// Behind the script's last step nothing is worth waiting for.
	last := s.script[s.next+min(n, len(s.script)-s.next)-1]
	return max(first.at, min(first.at+within, last.at)) - s.now()
}

// ends says whether the script ends the ownership itself.
func (s *source) ends() bool {
	return len(s.script) > 0 && s.script[len(s.script)-1].end != goesOn
}

// pop takes at most n of the entries that have arrived; nil is the end.
func (s *source) pop(n int) []rstream.Entry {
	var out []rstream.Entry
	now := s.now()
	for len(out) < n && s.next < len(s.script) {
		a := s.script[s.next]
		if a.end != goesOn || a.at > now {
			break
		}
		out = append(out, a.entry)
		s.taken = append(s.taken, a.entry.ID)
		s.open = append(s.open, a.entry.ID)
		s.next++
	}
	if out == nil {
		s.finish(released)
		return nil
	}
	s.follow()
	return out
}

// follow arranges the end of the ownership if that is next; mu is held.
func (s *source) follow() {
	if s.next == len(s.script) || s.script[s.next].end == goesOn {
		return
	}
	e := s.script[s.next]
	if left := e.at - s.now(); left > 0 {
		s.after(left, func() { s.finish(e.end) })
		return
	}
	s.finish(e.end)
}

// after calls fn later, with mu held.
func (s *source) after(d time.Duration, fn func()) {
	s.timers = append(s.timers, time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		fn()
	}))
}

// finish begins the end of the ownership; mu is held.
func (s *source) finish(e end) {
	if s.over {
		return
	}
	s.over = true
	close(s.ending)
	if e == lost {
		s.gone = true
		s.cancel(e.cause())
		return
	}
	s.after(s.grace, func() { s.cancel(e.cause()) })
}

func (s *source) now() time.Duration { return time.Since(s.began) }

// Ack notes what is done; the acks of a lost ownership are void.
func (s *source) Ack(ids []string, gap bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		i := slices.Index(s.open, id)
		if i < 0 {
			s.t.Errorf("runneltest: ack of %s, which is not being processed", id)
			continue
		}
		if i > 0 && !gap {
			s.t.Errorf("runneltest: ack of %s before %s", id, s.open[0])
		}
		s.open = slices.Delete(s.open, i, i+1)
		if !s.gone {
			s.acked = append(s.acked, id)
		}
	}
}

func (s *source) Ignored(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignored += n
	s.errs = append(s.errs, err)
	if n > 0 {
		s.failures = 0
		return
	}
	if s.failures++; s.failures >= startFailures && !s.ends() {
		s.finish(released)
	}
}

// Quarantine ends the run: nothing more would happen to the partition.
func (s *source) Quarantine(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = err
	s.finish(released)
}
