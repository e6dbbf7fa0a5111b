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

	rec *recorder
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
	r.Err, r.rec = err, rec
	return &r
}

// A Run is a *Result or a *Settled: what was sent meanwhile is recorded.
type Run interface{ recorded() *recorder }

func (r *Result) recorded() *recorder { return r.rec }

// Sent returns the records that were sent to a stream of the app during the run,
// in the order of the calls; those of one call are put together by partition.
func Sent[U any](t testing.TB, r Run, s *runnel.Stream[U]) []U {
	t.Helper()
	var out []U
	for _, o := range SentEvents(t, r, s) {
		out = append(out, o.Record)
	}
	return out
}

// SentEvents is Sent with the IDs, keys, headers and due times that were given with
// the records. A due time is in At, also where it was given as After. A delayed event that was cancelled is left out, and one that was
// rescheduled has its new time.
func SentEvents[U any](t testing.TB, r Run, s *runnel.Stream[U]) []runnel.Outgoing[U] {
	t.Helper()
	var out []runnel.Outgoing[U]
	for _, sent := range r.recorded().of(t, s.Name()) {
		record, ok := sent.record.(U)
		if !ok {
			t.Fatalf("runneltest: stream %s of another app has records of type %T", s.Name(), sent.record)
		}
		out = append(out, runnel.Outgoing[U]{Record: record, DedupID: sent.id, Key: sent.key, Headers: sent.headers, At: sent.at})
	}
	return out
}
