package runneltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/worker"
)

// Process runs a registered processor, with its options, middleware and policy,
// over records as the events of one partition, then releases the partition and
// tells what became of them. The events have the IDs "1-0", "2-0" and so on.
//
// Rows end by the time of events alone; Script.Quiet ends those behind them.
//
// There is no Redis and nothing to wait for: a batch of Take is yielded at once
// when no more events are to come, and an event that is attempted again (Retry)
// does not wait for its time, which Result.Attempts tells. The function runs in the calling goroutine,
// also in a synctest bubble, so it may call t.Fatal. A record that cannot be
// encoded, or a processor that is not registered, is fatal to t. Runs over one
// app take turns.
func Process[T any](t testing.TB, s *runnel.Stream[T], processor string, records ...T) *Result {
	t.Helper()
	return Events(t, s, processor).Records(records...).Run()
}

// A Script is what happens to one partition of a stream while a processor owns
// it, step by step. Its methods add to it and return it; Run plays it.
//
// Events arrive in their order and get the IDs "1-0", "2-0" and so on. After the
// last one the partition is released. Not for concurrent use.
type Script[T any] struct {
	t         testing.TB
	stream    *runnel.Stream[T]
	processor string

	partition int
	epoch     int64
	given     int           // how many events an earlier owner was given
	at        time.Duration // arrival of what comes next
	stamp     time.Time     // of the IDs; zero: they count
	inStamp   int
	steps     []step
	sendErr   error
	rows      []givenRows
}

// step is an event, a time without any, or the end of the ownership.
type step struct {
	at     time.Duration                           // since the run began
	values func(*recorder) (map[string]any, error) // nil: no event
	id     string
	quiet  int64 // no event comes before, in ms
	end    end
}

// Events begins a script of a registered processor.
func Events[T any](t testing.TB, s *runnel.Stream[T], processor string) *Script[T] {
	return &Script[T]{t: t, stream: s, processor: processor, epoch: 1}
}

// Records adds events.
func (s *Script[T]) Records(records ...T) *Script[T] {
	for _, r := range records {
		s.Outgoing(runnel.Outgoing[T]{Record: r})
	}
	return s
}

// Outgoing adds an event with a key and headers of its own. One with At or After
// was delayed: it has a due time, and arrives no later for that.
func (s *Script[T]) Outgoing(out runnel.Outgoing[T]) *Script[T] {
	return s.event(func(r *recorder) (map[string]any, error) { return encode(r, s.stream, out) })
}

// Raw adds an entry with these fields, which need not be decodable.
func (s *Script[T]) Raw(fields map[string]string) *Script[T] {
	values := make(map[string]any, len(fields))
	for name, value := range fields {
		values[name] = value
	}
	return s.event(func(*recorder) (map[string]any, error) { return values, nil })
}

// Redelivered says of the events added so far that an earlier owner was given
// them.
func (s *Script[T]) Redelivered() *Script[T] {
	s.given = s.events()
	return s
}

// Partition sets the number of the partition; else it is 0.
func (s *Script[T]) Partition(n int) *Script[T] {
	s.partition = n
	return s
}

// Epoch sets the epoch of the ownership; else it is 1.
func (s *Script[T]) Epoch(n int64) *Script[T] {
	s.epoch = n
	return s
}

// Appended makes the IDs of the events that follow, and so Event.Appended, those
// of this time: "<milliseconds>-0", "-1" and so on.
func (s *Script[T]) Appended(at time.Time) *Script[T] {
	s.stamp, s.inStamp = at, 0
	return s
}

// Wait lets what follows arrive this much later. It really takes that time: use
// it in a synctest bubble.
func (s *Script[T]) Wait(d time.Duration) *Script[T] {
	s.at += d
	return s
}

// Quiet lets no event come before a time of Redis' clock. Once all events before are
// processed, rows end that do by then and whose table has an OnExpire. What follows
// should be Appended no earlier.
func (s *Script[T]) Quiet(until time.Time) *Script[T] {
	s.open()
	s.steps = append(s.steps, step{at: s.at, quiet: until.UnixMilli()})
	return s
}

// Release asks for the partition as soon as the events before it were handed to
// the loop, while the last of them is being processed. After Grace the context
// of the function ends with ErrReleased. Nothing can follow it.
func (s *Script[T]) Release() *Script[T] { return s.ends(released) }

// Shutdown is Release because the worker is stopping: the cause is ErrShutdown.
func (s *Script[T]) Shutdown() *Script[T] { return s.ends(shutdown) }

// Lose lets the partition be lost as soon as the events before it were handed to
// the loop: the context ends at once with ErrLost and nothing is acked any more.
// Nothing can follow it.
func (s *Script[T]) Lose() *Script[T] { return s.ends(lost) }

// FailSends makes every send to a stream of the app fail with err. Emit is no send, and
// does not fail.
func (s *Script[T]) FailSends(err error) *Script[T] {
	s.sendErr = err
	return s
}

// Run plays the script and returns when the function has ended. A function that
// fails before its first event under the policy Ignore is called three times;
// then the partition is released, unless the script ends the ownership itself.
func (s *Script[T]) Run() *Result {
	s.t.Helper()
	reg := appview.Of(s.stream.App())
	p := s.find(reg)
	rec := newRecorder(s.t, reg)
	defer reg.Intercept(rec)()

	var script []arrival
	var given []string
	for _, st := range s.steps {
		if st.values == nil {
			script = append(script, arrival{at: st.at, quiet: st.quiet, end: st.end})
			continue
		}
		values, err := st.values(rec)
		if err != nil {
			s.t.Fatalf("runneltest: event %s of stream %s: %v", st.id, s.stream.Name(), err)
		}
		script = append(script, arrival{at: st.at, entry: redisconn.Entry{ID: st.id, Values: values}})
		if len(given) < s.given {
			given = append(given, st.id)
		}
	}
	rec.begin(s.sendErr)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.t.Context()))
	defer cancel(nil)
	src := newSource(s.t, p, s.partition, s.epoch, script, given, rec, cancel)
	in := worker.Input{Partition: s.partition, Epoch: s.epoch, Ending: src.ending, Source: src}
	if src.tables != nil {
		in.Rows, src.tables.app = src.tables.rows, s.stream.App()
	}
	s.giveRows(src.tables)
	err := p.Consume(ctx, in)
	return src.told(err, rec)
}

func (s *Script[T]) find(reg *appview.View) *worker.Processor {
	s.t.Helper()
	all, err := reg.Processors()
	if err != nil {
		s.t.Fatalf("runneltest: app %s: %v", reg.App, err)
	}
	var known []string
	for _, p := range all {
		if p.Stream == s.stream.Name() && p.Name == s.processor {
			return p
		}
		known = append(known, p.Stream+"/"+p.Name)
	}
	s.t.Fatalf("runneltest: no processor %q; there are %q", s.stream.Name()+"/"+s.processor, known)
	return nil
}

func (s *Script[T]) event(values func(*recorder) (map[string]any, error)) *Script[T] {
	s.open()
	id := fmt.Sprintf("%d-0", s.events()+1)
	if !s.stamp.IsZero() {
		id = fmt.Sprintf("%d-%d", s.stamp.UnixMilli(), s.inStamp)
		s.inStamp++
	}
	s.steps = append(s.steps, step{at: s.at, values: values, id: id})
	return s
}

func (s *Script[T]) ends(e end) *Script[T] {
	s.open()
	s.steps = append(s.steps, step{at: s.at, end: e})
	return s
}

// open checks that the ownership has not ended yet.
func (s *Script[T]) open() {
	s.t.Helper()
	if n := len(s.steps); n > 0 && s.steps[n-1].end != goesOn {
		s.t.Fatal("runneltest: nothing can follow Release, Shutdown or Lose")
	}
}

func (s *Script[T]) events() (n int) {
	for _, st := range s.steps {
		if st.values != nil {
			n++
		}
	}
	return n
}
