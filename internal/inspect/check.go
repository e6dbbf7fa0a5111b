package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/words"
)

// Limits are the values that Check tolerates; a nil field has no limit.
type Limits struct {
	Lag  *int64         // events
	Age  *time.Duration // of an unacked event
	Dead *int64         // dead letters of a processor
	Lost int64          // events of a processor that were removed before they were processed
}

// UnownedFor is how old an event of a partition without an owner may be: a takeover from a dead
// worker takes about its lease.
const UnownedFor = time.Minute

// A Finding is a problem that Check found.
type Finding struct {
	Stream    string `json:"stream"`
	Processor string `json:"processor"`           // "" if the stream has none
	Partition *int   `json:"partition,omitempty"` // nil: all together
	What      string `json:"what"`                // "lag", "age", "dead", "lost", "quarantine", "halt", "held", "forgotten", "eviction", "workers", "outputs", "owner", "partitions" or "processors"
	Value     int64  `json:"value"`               // events, or ms
	Limit     int64  `json:"limit"`
	Text      string `json:"text"`
}

// helpOf is the help of a finding by its What; "partitions" brings its own.
var helpOf = map[string]string{
	"workers": help.NoWorker, "outputs": help.NoWorker, "owner": help.NotTakenOver, "processors": help.NoWorker,
	"lag": help.EventsWait, "age": help.EventsWait, "held": help.Paused,
	"dead": help.DeadLetters, "lost": help.EventsLost, "forgotten": help.EventsMayBeGone, "eviction": help.Eviction,
	"halt": help.WorkerHalts, "quarantine": help.Quarantine,
}

// Check returns the problems of an app. It returns an error if a part of the app could not be read:
// the rest may be fine or not.
func Check(ctx context.Context, c *store.Client, app *AppState, limits Limits) ([]Finding, error) {
	if err := app.unread(); err != nil {
		return nil, err
	}
	out, err := morePartitions(ctx, c, app)
	if err != nil {
		return nil, err
	}
	for _, st := range app.Streams {
		if len(st.Processors) == 0 && st.Kind != store.KindTopic { // subscribers read a topic
			out = append(out, Finding{Stream: st.Stream, What: "processors", Value: st.Length,
				Text: fmt.Sprintf("stream %s: it has no processor: start the workers that process it; %s", st.Stream, helpOf["processors"])})
		}
		for i := range st.Processors {
			p := &st.Processors[i]
			if p.MembersErr != "" {
				return nil, errors.New(p.MembersErr)
			}
			for _, s := range p.Partitions {
				if s.Err != "" {
					return nil, fmt.Errorf("partition %d cannot be looked at: %s", s.Partition, s.Err)
				}
			}
			out = append(out, p.findings(limits)...)
		}
	}
	for _, e := range app.Evictions {
		if e.MaxMemory > 0 { // as it is set now
			out = append(out, Finding{What: "eviction", Value: e.Evicted, Text: e.Text + ": events may vanish without an error; run CONFIG SET maxmemory-policy noeviction there; " + helpOf["eviction"]})
		}
	}
	return out, nil
}

// unread returns the error of the first unreadable key of an app, outside of processors.
func (a *AppState) unread() error {
	for _, stream := range slices.Sorted(maps.Keys(a.Unreadable)) {
		return errors.New(a.Unreadable[stream])
	}
	if a.LeaderErr != "" { // leader-only tasks do not run
		return errors.New(a.LeaderErr)
	}
	if a.RulesErr != "" { // partitions may be held, or wait for an owner that knows the rules
		return errors.New(a.RulesErr)
	}
	return nil
}

// morePartitions finds streams with more partitions in Redis than in the app.
func morePartitions(ctx context.Context, c *store.Client, app *AppState) ([]Finding, error) {
	out, own := []Finding{}, map[string]int{}
	for _, st := range app.Streams {
		own[st.Stream] = st.Partitions
	}
	more, err := c.MorePartitions(ctx, own)
	for _, stream := range slices.Sorted(maps.Keys(more)) {
		e := more[stream]
		out = append(out, Finding{Stream: stream, What: "partitions", Value: int64(e.There), Limit: int64(e.Own), Text: e.Error()})
	}
	return out, err
}

func (p *ProcessorState) findings(limits Limits) []Finding {
	f := &finder{p: p}
	working := p.Working()
	if working == 0 {
		f.add(nil, "workers", 0, 0, "no worker runs it: start one")
	}
	if waiting := p.Totals.Outputs; working == 0 && waiting > 0 {
		f.add(nil, "outputs", waiting, 0, "%s in outboxes: start a worker, which brings away what was committed", waits(waiting))
	}
	if limits.Lag != nil && p.Totals.Lag > *limits.Lag {
		f.add(nil, "lag", p.Totals.Lag, *limits.Lag, "lag %s is above %d", words.AtLeast(p.Totals.Lag, p.Totals.LagMore), *limits.Lag)
	}
	if limits.Dead != nil && p.Totals.Dead > *limits.Dead {
		f.add(nil, "dead", p.Totals.Dead, *limits.Dead, "%s, above %d; see dead ls %s/%s", words.Plural(p.Totals.Dead, "dead letter"), *limits.Dead, p.Stream, p.Processor)
	}
	if p.Totals.Lost > limits.Lost {
		f.add(nil, "lost", p.Totals.Lost, limits.Lost, "%s lost, removed before they were processed, above %d; --max-lost %d accepts that",
			words.Plural(p.Totals.Lost, "event"), limits.Lost, p.Totals.Lost)
	}
	for i := range p.Partitions {
		f.partition(&p.Partitions[i], limits, working)
	}
	return f.out
}

type finder struct {
	p   *ProcessorState
	out []Finding
}

func (f *finder) add(partition *int, what string, value, limit int64, format string, args ...any) {
	where := fmt.Sprintf("stream %s: processor %s", f.p.Stream, f.p.Processor)
	if partition != nil {
		where = fmt.Sprintf("stream %s partition %d: processor %s", f.p.Stream, *partition, f.p.Processor)
	}
	f.out = append(f.out, Finding{f.p.Stream, f.p.Processor, partition, what, value, limit, where + ": " + fmt.Sprintf(format, args...) + "; " + helpOf[what]})
}

func (f *finder) partition(s *PartitionState, limits Limits, working int) {
	age := time.Duration(s.Age) * time.Millisecond
	if limits.Age != nil && age > *limits.Age {
		f.add(&s.Partition, "age", s.Age, limits.Age.Milliseconds(), "event %s has not been acked for %s, above %s (%s)", entryid.EventID(s.Partition, s.Oldest), words.Short(age), *limits.Age, s.State(time.Now()))
	}
	if working > 0 && s.Executor == "" && age > UnownedFor {
		f.add(&s.Partition, "owner", s.Age, UnownedFor.Milliseconds(), "no worker owns it, and event %s has not been acked for %s; see /readyz and the log of the workers", entryid.EventID(s.Partition, s.Oldest), words.Short(age))
	}
	if q := s.Halt; q != nil {
		f.add(&s.Partition, "halt", 1, 0, "%s; %s", q.Halted(), PassOver(f.p.Stream, f.p.Processor, q.Event))
	}
	if q := s.Quarantine; q != nil {
		f.add(&s.Partition, "quarantine", 1, 0, "quarantined since %s, at event %s: %s", q.At.Format(time.RFC3339), words.Dash(q.Event), words.Reason(q.Event, q.Reason))
	}
	if g := s.Forgotten; g != nil {
		f.add(&s.Partition, "forgotten", 1, 0, "at %s Redis had forgotten events: %s; this is shown for a day", g.At.Format(time.RFC3339), g.Text)
	}
	if s.Held != "" {
		f.add(&s.Partition, "held", 1, 0, "held back by a %s; see rules ls", s.Held)
	}
}

// State returns a word for the state of a partition: what, if anything, stops its processing.
func (s *PartitionState) State(now time.Time) string {
	switch {
	case s.Quarantine != nil:
		return "quarantined"
	case s.Held == "block":
		return "blocked"
	case s.Held == "pause":
		return "paused"
	case s.NotReading != nil:
		return "not reading"
	case s.RunningSince != nil:
		return "running for " + words.Short(now.Sub(*s.RunningSince))
	case s.Executor == "" && s.Halt != nil:
		return "halted"
	case s.Executor == "":
		return "no owner"
	}
	return "ok"
}

// Halted says which worker halted, where and why.
func (q *QuarantineState) Halted() string {
	at := ""
	if q.Event != "" {
		at = " at event " + q.Event
	}
	return fmt.Sprintf("worker %s halted%s at %s: %s", words.Dash(q.Worker), at, q.At.Format(time.RFC3339), words.Reason(q.Event, q.Reason))
}

// PassOver returns what to do about a worker that halted, at an event or, with "", at none.
func PassOver(stream, processor, event string) string {
	if event == "" {
		return "mend what fails and start a worker"
	}
	return fmt.Sprintf("mend what fails and start a worker, or pass the event over, unprocessed, while none runs: processor reset %s/%s --to %s", stream, processor, event)
}
