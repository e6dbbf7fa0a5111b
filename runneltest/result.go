package runneltest

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel"
)

// A Result is what became of the events of a run. IDs are in the order in which
// things happened to them.
type Result struct {
	Taken []string // handed to middleware or loop; those that were attempted again stand there again
	Acked []string // and what was attempted again with success, or dropped

	Attempts []Attempt    // all of Taken
	Parked   []string     // left for another attempt when the ownership ended, in the order of the script
	Dead     []DeadLetter // what became dead letters
	Dropped  int          // events dropped by runnel.Drop

	Ignored     int     // events dropped by the policy Ignore
	IgnoredErrs []error // why, and errors before the first event
	Quarantined error   // what stopped the partition, under the policy Quarantine
	Err         error   // what would have stopped the worker

	rec    *recorder
	tables *tables
}

// An Attempt is one try of an event.
type Attempt struct {
	ID     string
	Number int           // Event.Attempt
	At     time.Duration // since the run began, the waits between attempts counted as if they had been waited
}

// A DeadLetter is an event that was moved aside after its last attempt.
type DeadLetter struct {
	ID       string // of the event
	Key      string
	Attempts int
	Reason   string        // "failed", "decode" or "dead"
	Error    string        // of the last attempt
	Took     time.Duration // from the first failure to the last
}

// told returns the result of a run whose consumer has returned err.
func (s *source) told(err error, rec *recorder) *Result {
	s.stop()
	r := s.result
	r.Parked, r.Dropped = s.shelf.parked(), int(s.count.Dropped.Load())
	r.Err, r.rec, r.tables = err, rec, s.tables
	return &r
}

// A Run is a *Result or a *Settled: what was sent meanwhile is recorded.
type Run interface{ recorded() *recorder }

func (r *Result) recorded() *recorder { return r.rec }

// Sent returns the records that were sent to a stream of the app during the run,
// in the order of the calls; those of one call are put together by partition. What was
// emitted is not among them: see Emitted.
func Sent[U any](t testing.TB, r Run, s *runnel.Stream[U]) []U {
	t.Helper()
	var out []U
	for _, o := range SentEvents(t, r, s) {
		out = append(out, o.Record)
	}
	return out
}

// SentEvents is Sent with the IDs, keys, headers and due times that were given with
// the records. A due time is in At, also where it was given as After. A delayed event
// that was cancelled is left out, and one that was rescheduled has its new time.
func SentEvents[U any](t testing.TB, r Run, s *runnel.Stream[U]) []runnel.Outgoing[U] {
	t.Helper()
	return outgoing(t, r.recorded(), s, false)
}

// Emitted returns the records that an Atomic processor emitted to a stream of the app
// and that were committed, in the order of the calls of Emit. What an iteration emits
// that fails, or that the partition is lost in, is not among them, nor is what was sent.
func Emitted[U any](t testing.TB, r *Result, s *runnel.Stream[U]) []U {
	t.Helper()
	var out []U
	for _, o := range EmittedEvents(t, r, s) {
		out = append(out, o.Record)
	}
	return out
}

// EmittedEvents is Emitted with the keys and headers that were given with the records.
func EmittedEvents[U any](t testing.TB, r *Result, s *runnel.Stream[U]) []runnel.Outgoing[U] {
	t.Helper()
	return outgoing(t, r.rec, s, true)
}

func outgoing[U any](t testing.TB, rec *recorder, s *runnel.Stream[U], emitted bool) []runnel.Outgoing[U] {
	t.Helper()
	var out []runnel.Outgoing[U]
	for _, sent := range rec.of(t, s.Name(), emitted) {
		record, ok := sent.record.(U)
		if !ok {
			t.Fatalf("runneltest: stream %s of another app has records of type %T", s.Name(), sent.record)
		}
		out = append(out, runnel.Outgoing[U]{Record: record, DedupID: sent.id, Key: sent.key, Headers: sent.headers, At: sent.at})
	}
	return out
}
