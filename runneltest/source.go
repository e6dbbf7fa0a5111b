package runneltest

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
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
	entry redisconn.Entry
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
	order     []string // of all IDs
	given     []string

	count   *worker.Counters
	retries *retryqueue.Queue
	shelf   *shelf

	began  time.Time
	grace  time.Duration
	cancel context.CancelCauseFunc
	ending chan struct{}
	timers []*time.Timer // guarded by mu

	mu       sync.Mutex
	skew     time.Duration // what was not waited for
	next     int           // in script
	over     bool
	gone     bool
	taken    []string
	acked    []string
	open     []string // taken, not acked
	attempts []Attempt
	ignored  int
	failures int
	errs     []error
	stopped  error
}

var _ worker.Source = (*source)(nil)

func (s *source) start(p *worker.Processor, cancel context.CancelCauseFunc) {
	s.began, s.grace, s.cancel = time.Now(), p.Grace, cancel
	s.count, s.shelf = new(worker.Counters), newShelf(s)
	s.retries = retryqueue.New(retryqueue.Config{
		Retry: p.Retry, Store: s.shelf, Key: p.Key, Limit: p.MaxLen, Partition: s.partition, Epoch: s.epoch,
		Log: slog.New(slog.DiscardHandler), Counts: &s.count.Counts,
	})
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
// n of them or for within to pass, but not for what never comes. Nor does it wait
// for the next attempt of a parked event: its time comes at once.
func (s *source) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	if n < 1 || within < 0 {
		s.t.Errorf("runneltest: Take(%d, %v)", n, within)
	}
	for {
		entries, err := s.turn(n, within)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Next acks, and takes the next entry if it has arrived and nothing is parked.
func (s *source) Next(done string, _ bool) (e redisconn.Entry, ok bool) {
	s.Ack([]string{done}, false)
	if !s.Live() || !s.retries.Idle() {
		return e, false
	}
	s.mu.Lock()
	var out []redisconn.Entry
	if !s.over && s.next < len(s.script) && s.wait(1, 0) <= 0 {
		out = s.pop(1)
	}
	s.mu.Unlock()
	s.begin(out, true)
	if len(out) == 0 {
		return e, false
	}
	return out[0], true
}

// turn is one try of Take; without entries and error it is time for another one.
func (s *source) turn(n int, within time.Duration) ([]redisconn.Entry, error) {
	if !s.Live() {
		return nil, io.EOF
	}
	if e, ok, err := s.retries.Next(false, func(bool) bool { return true }); err != nil || ok {
		s.begin([]redisconn.Entry{e}, ok)
		return []redisconn.Entry{e}, err
	}
	due, blocked := s.retries.Wait(), s.retries.Blocked()
	s.mu.Lock()
	wait, come := s.wait(n, within), s.next < len(s.script)
	switch {
	case s.over:
	case due >= 0 && (!come || blocked || due <= wait):
		s.skew += due
		s.follow()
	case wait > 0:
		s.mu.Unlock()
		s.sleep(wait)
		return nil, nil
	default:
		out := s.pop(n)
		s.mu.Unlock()
		return s.sift(out)
	}
	s.mu.Unlock()
	return nil, nil
}

// Deadly is never: nothing dies here.
func (s *source) Deadly(string) error { return nil }

// sift keeps back what stands behind a parked event.
func (s *source) sift(out []redisconn.Entry) ([]redisconn.Entry, error) {
	if out == nil {
		return nil, io.EOF
	}
	rest, _, err := s.retries.Sift(slices.Clone(out))
	s.begin(rest, err == nil)
	return rest, err
}

// begin notes what is handed out.
func (s *source) begin(entries []redisconn.Entry, ok bool) {
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		s.taken = append(s.taken, e.ID)
		s.attempts = append(s.attempts, Attempt{ID: e.ID, Number: s.retries.Attempts(e.ID) + 1, At: s.now()})
	}
}

func (s *source) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ending:
	case <-timer.C:
	}
}

// Untake puts entries back into the script.
func (s *source) Untake(entries []redisconn.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(entries)
	s.next -= n
	for i, e := range entries {
		s.script[s.next+i] = arrival{entry: e} // what stood between them is parked
	}
	s.taken = s.taken[:len(s.taken)-n]
	s.attempts = s.attempts[:len(s.attempts)-n]
	for _, e := range entries {
		s.close(e.ID)
	}
}

// wait is how long a batch of n is not complete; mu is held.
func (s *source) wait(n int, within time.Duration) time.Duration {
	if s.next == len(s.script) {
		return 0
	}
	first := s.script[s.next]
	if first.end != goesOn {
		return max(first.at-s.now(), time.Millisecond) // a timer ends the wait
	}
	// Behind the script's last step nothing is worth waiting for.
	last := s.script[s.next+min(n, len(s.script)-s.next)-1]
	return max(first.at, min(first.at+within, last.at)) - s.now()
}

// ends reports whether the script ends the ownership itself.
func (s *source) ends() bool {
	return len(s.script) > 0 && s.script[len(s.script)-1].end != goesOn
}

// pop takes at most n of the entries that have arrived; nil is the end.
func (s *source) pop(n int) []redisconn.Entry {
	var out []redisconn.Entry
	now := s.now()
	for len(out) < n && s.next < len(s.script) {
		a := s.script[s.next]
		if a.end != goesOn || a.at > now {
			break
		}
		out = append(out, a.entry)
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

func (s *source) now() time.Duration { return time.Since(s.began) + s.skew }

// Attempts tells of a parked event.
func (s *source) Attempts(id string) int { return s.retries.Attempts(id) }

// Fail decides what becomes of events that failed, and parks them here.
func (s *source) Fail(ctx context.Context, failures []retryqueue.Failure) error {
	acks, err := s.retries.Fail(ctx, failures)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range acks {
		s.close(id)
		if !s.gone {
			s.acked = append(s.acked, id)
		}
	}
	return err
}

// Interrupted gives a parked event its attempt back.
func (s *source) Interrupted() {
	if err := s.retries.Interrupted(); err != nil && s.Holds() {
		s.t.Errorf("runneltest: %v", err)
	}
}

// close takes an entry off those that are being processed; mu is held.
func (s *source) close(id string) {
	s.open = slices.DeleteFunc(s.open, func(open string) bool { return open == id })
}

// Ack notes what is done; the acks of a lost ownership are void.
func (s *source) Ack(ids []string, gap bool) {
	if s.retries.Runs(ids[0]) {
		if err := s.retries.Done(); err != nil && s.Holds() {
			s.t.Errorf("runneltest: %v", err)
		}
		return
	}
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

func (s *source) Ignored(_ context.Context, n int, err error) {
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

// Stuck shows the report with the test's output.
func (s *source) Stuck(_ context.Context, event string, after time.Duration, stack string) {
	s.t.Logf("runneltest: the function is stuck with event %s for %v, though its context has ended:\n%s", event, after, stack)
}

// Quarantine ends the run: nothing more would happen to the partition.
func (s *source) Quarantine(_ context.Context, _ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = err
	s.finish(released)
}
