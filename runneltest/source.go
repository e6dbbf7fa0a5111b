package runneltest

import (
	"context"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/worker"
)

// arrival is an entry, or a time before which none comes, or the end of the ownership when everything before it has
// been taken.
type arrival struct {
	at    time.Duration // since began
	entry redisconn.Entry
	quiet int64 // ms
	end   end
}

// startFailures is how often a function may fail before its first event.
const startFailures = 3

// source is a worker.Source whose entries come from a script. What the script
// says of time is time: nothing arrives early. Between script and consumer it has what a
// worker has: a buffer, whose acks are confirmed at once, and a queue of parked events.
type source struct {
	*life
	t       testing.TB
	buffer  *prefetch.Buffer
	retries *retryqueue.Queue
	shelf   *shelf
	count   worker.Counters
	tables  *tables // nil unless the processor is atomic

	script []arrival
	given  []string // IDs that an earlier owner was given
	next   int      // in script: what is before it was pushed
	began  time.Time
	skew   time.Duration // what was not waited for

	result   Result
	failures int // of the function, since it had an event
}

var _ worker.Source = (*source)(nil)

// newSource begins an ownership.
func newSource(t testing.TB, p *worker.Processor, partition int, epoch int64, script []arrival, given []string, rec *recorder, cancel context.CancelCauseFunc) *source {
	s := &source{t: t, tables: newTables(t, p, rec), script: script, given: given, began: time.Now()}
	s.buffer = prefetch.New(prefetch.Config{Capacity: len(script) + 1, MaxBytes: math.MaxInt64})
	s.life = &life{buffer: s.buffer, grace: p.Grace, cancel: cancel, ending: make(chan struct{})}
	s.shelf = &shelf{s: s, entries: map[string]redisconn.Entry{}}
	s.retries = retryqueue.New(retryqueue.Config{
		Retry: p.Retry, Store: s.shelf, Key: p.Key, Limit: p.MaxLen, Partition: partition, Epoch: epoch,
		Log: slog.New(slog.DiscardHandler), Counts: &s.count.Counts,
	})
	s.play()
	return s
}

func (s *source) now() time.Duration { return time.Since(s.began) + s.skew }

// play follows the script as far as its time has come. Its end comes when nothing waits any more.
func (s *source) play() {
	for s.next < len(s.script) {
		a := s.script[s.next]
		left := a.at - s.now()
		switch waiting, _, _ := s.buffer.Held(); {
		case a.end != goesOn && waiting == 0:
			s.endAfter(left, a.end)
			return
		case a.end != goesOn || a.quiet > 0 || left > 0:
			return
		}
		s.buffer.Push([]redisconn.Entry{a.entry})
		s.next++
	}
}

// wait is how long a batch of n is not complete. more reports whether anything is to come.
func (s *source) wait(n int, within time.Duration) (wait time.Duration, more bool) {
	waiting, _, _ := s.buffer.Held()
	left := s.script[s.next-waiting:]
	switch {
	case len(left) == 0:
		return 0, false
	case left[0].end != goesOn || left[0].quiet > 0:
		return max(left[0].at-s.now(), time.Millisecond), true // a timer ends the wait
	}
	// Behind the script's last step nothing is worth waiting for.
	first, last := left[0].at, left[min(n, len(left))-1].at
	return max(first, min(first+within, last)) - s.now(), true
}

// Take follows the script: it waits for the first entry to arrive, and then for
// n of them or for within to pass, but not for what never comes. Nor does it wait
// for the next attempt of a parked event: its time comes at once.
func (s *source) Take(n int, within time.Duration) ([]redisconn.Entry, error) {
	if n < 1 || within < 0 {
		s.t.Errorf("runneltest: Take(%d, %v)", n, within)
	}
	for {
		if s.quiet() {
			return nil, nil
		}
		entries, err := s.turn(n, within)
		if err != nil || len(entries) > 0 {
			s.begin(entries...)
			return entries, err
		}
	}
}

// quietNext reports whether a time without events is what comes next, and has arrived.
func (s *source) quietNext() bool {
	waiting, _, _ := s.buffer.Held()
	return waiting == 0 && s.next < len(s.script) && s.script[s.next].quiet > 0 && s.script[s.next].at <= s.now()
}

// quiet plays a time without events, once nothing is parked.
func (s *source) quiet() bool {
	if !s.quietNext() || !s.retries.Idle() {
		return false
	}
	if s.tables != nil {
		s.tables.rows.Quiet(s.script[s.next].quiet)
	}
	s.next++
	s.play()
	return true
}

// turn is one try of Take; without entries and error it is time for another one.
func (s *source) turn(n int, within time.Duration) ([]redisconn.Entry, error) {
	if !s.Live() {
		return nil, io.EOF
	}
	e, ok, err := s.retries.Next(false, func(bool) bool { return true })
	switch {
	case err != nil:
		return nil, err
	case ok:
		return []redisconn.Entry{e}, nil
	}
	s.play()
	wait, more := s.wait(n, within)
	due := s.retries.Wait()
	switch {
	case due >= 0 && (!more || s.quietNext() || s.retries.Blocked() || due <= wait):
		s.skew += due
		s.play()
	case !more:
		s.end(released)
	case wait > 0:
		s.sleep(wait)
	default:
		entries, err := s.buffer.Await(n, 0, 0)
		if err != nil {
			return nil, err
		}
		rest, acks, err := s.retries.Sift(entries)
		s.done(acks)
		return rest, err
	}
	return nil, nil
}

// Next acks, and takes the next entry if it has arrived and nothing is parked.
func (s *source) Next(done string, _ bool) (e redisconn.Entry, ok bool) {
	if !s.retries.Idle() {
		s.Ack([]string{done})
		return e, false
	}
	s.play()
	s.Commit()
	e, ok, _, _ = s.buffer.Next(done, 0)
	s.confirm()
	if ok {
		s.begin(e)
	}
	return e, ok
}

// begin notes what is handed out. The script's end may come behind it.
func (s *source) begin(entries ...redisconn.Entry) {
	for _, e := range entries {
		s.result.Taken = append(s.result.Taken, e.ID)
		s.result.Attempts = append(s.result.Attempts, Attempt{ID: e.ID, Number: s.retries.Attempts(e.ID) + 1, At: s.now()})
	}
	s.play()
}

func (s *source) Untake(entries []redisconn.Entry) {
	s.buffer.Untake(entries)
	left := len(s.result.Taken) - len(entries)
	s.result.Taken, s.result.Attempts = s.result.Taken[:left], s.result.Attempts[:left]
}

// Prior has no deaths: nothing dies here.
func (s *source) Prior(id string) worker.Prior {
	return worker.Prior{Redelivered: slices.Contains(s.given, id), Attempts: s.retries.Attempts(id)}
}

func (s *source) Ack(ids []string) {
	s.Commit()
	if s.retries.Runs(ids[0]) {
		s.stored(s.retries.Done())
		return
	}
	s.done(ids)
}

// Wait lets the time between two attempts pass at once.
func (s *source) Wait(d time.Duration) bool {
	s.skew += d
	return s.Live()
}

// Commit stores what the iteration that ends has changed; a lost ownership stores nothing.
func (s *source) Commit() {
	if s.tables != nil && s.Holds() {
		s.tables.commit()
	}
}

// done passes entries that need no more processing to the buffer.
func (s *source) done(ids []string) {
	if len(ids) > 0 {
		s.buffer.Done(ids)
		s.confirm()
	}
}

// confirm does what an acker does; the acks of a lost ownership are void.
func (s *source) confirm() {
	if s.Holds() {
		ids, _ := s.buffer.TakeAcks(math.MaxInt, "")
		s.result.Acked = append(s.result.Acked, ids...)
		s.buffer.AcksConfirmed()
	}
}

// Fail decides what becomes of events that failed, and parks them here.
func (s *source) Fail(ctx context.Context, failures []retryqueue.Failure) error {
	acks, err := s.retries.Fail(ctx, failures)
	s.done(acks)
	return err
}

// Interrupted gives a parked event its attempt back.
func (s *source) Interrupted() { s.stored(s.retries.Interrupted()) }

// stored checks the outcome of a write, which only the end of the ownership makes fail.
func (s *source) stored(err error) {
	if err != nil && s.Holds() {
		s.t.Errorf("runneltest: %v", err)
	}
}

func (s *source) Ignored(_ context.Context, n int, err error) {
	s.result.Ignored += n
	s.result.IgnoredErrs = append(s.result.IgnoredErrs, err)
	if n > 0 {
		s.failures = 0
		return
	}
	if s.failures++; s.failures >= startFailures && !s.ends() {
		s.end(released)
	}
}

// ends reports whether the script ends the ownership itself.
func (s *source) ends() bool {
	return len(s.script) > 0 && s.script[len(s.script)-1].end != goesOn
}

// Stuck shows the report with the test's output.
func (s *source) Stuck(_ context.Context, event string, after time.Duration, stack string) {
	s.t.Logf("runneltest: the function is stuck with event %s for %v, though its context has ended:\n%s", event, after, stack)
}

// Quarantine ends the run: nothing more would happen to the partition.
func (s *source) Quarantine(_ context.Context, _ string, err error) {
	s.result.Quarantined = err
	s.end(released)
}
