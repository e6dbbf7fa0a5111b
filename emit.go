package runnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/runnel-go/runnel/internal/store"
)

// ErrNotAtomic is returned by Emit if its context is of no iteration of an Atomic
// processor.
var ErrNotAtomic = errors.New("the context is of no iteration of an Atomic processor")

// Emit appends records with the ack of the iteration that ctx is of (Events.Context), or not
// at all: once, however often the events are processed. It returns before that, and does no I/O but for
// the stream's metadata at the first call. A partition that is full delays the commit until
// it has room, whatever Overflow says but OverflowDropOldest; the event's own stream never
// does. It returns ErrNotAtomic, or the error of a record that cannot be encoded; then
// nothing of the call is emitted. It may be called concurrently within the iteration, and only within
// it: what a goroutine emits that the iteration did not wait for comes with a later one, or is refused.
//
// With the key layout of Redis Cluster a partition with another number than the event's
// lies in another slot, which no step can write together with this one. The record is then
// kept with the ack, and appended there right after it, once and in order. The first time,
// Emit asks that partition what it has, and returns an error if the ownership or ctx ends meanwhile.
func (s *Stream[T]) Emit(ctx context.Context, records ...T) error {
	out := make([]Outgoing[T], len(records))
	for i, r := range records {
		out[i].Record = r
	}
	return s.EmitEvents(ctx, out...)
}

// Forward registers an Atomic processor of a stream, named as Stream.Process says, that emits
// what fn makes of each record to another stream: each once, in the order of the events. So
// records get another key, or come together with those of other streams; see the example
// join. fn is called as a function of Each is, in the order of a partition's events; for
// more than a conversion, Process with Emit is the way. A nil opts is all defaults. It
// panics as Process does.
func Forward[T, U any](from *Stream[T], name string, to *Stream[U], fn func(record T) U, opts *ProcessorOptions) {
	where := "runnel: stream " + from.name + ": Forward " + name + ": "
	switch {
	case to == nil || fn == nil:
		panic(where + "nil stream or function")
	case to.app != from.app:
		panic(where + "stream " + to.name + " is of another App")
	}
	o := *cmp.Or(opts, &ProcessorOptions{})
	o.Atomic = true
	from.Process(name, Each(func(ctx context.Context, _ *Event, record T) error {
		return to.Emit(ctx, fn(record))
	}), &o)
}

// EmitEvents is Emit for records with a Key and Headers. It refuses a DedupID, since
// nothing comes twice, and At and After: what is emitted is appended at once.
//
// Hooks of SendHooks are called, and their done with the partitions of the records: the
// IDs are not known yet.
func (s *Stream[T]) EmitEvents(ctx context.Context, out ...Outgoing[T]) error {
	if len(out) == 0 {
		return nil
	}
	if len(s.app.opts.SendHooks) == 0 {
		var one [1]store.Output
		_, err := s.emit(ctx, out, one[:0])
		return err
	}
	_, err := s.hooked(ctx, out, func(ctx context.Context, out []Outgoing[T]) ([]Sent, error) {
		outputs, err := s.emit(ctx, out, nil)
		sent := make([]Sent, len(out))
		for i, o := range outputs {
			sent[i].Partition = o.Partition
		}
		return sent, err
	})
	return err
}

// emit adds outputs to the iteration that ctx is of, all or none. It returns them behind outputs, in their memory if they fit.
func (s *Stream[T]) emit(ctx context.Context, out []Outgoing[T], outputs []store.Output) ([]store.Output, error) {
	sc, _ := ctx.Value(scopeKey{}).(*scope)
	switch {
	case sc == nil || sc.atomic == nil:
		return nil, s.notAtomic()
	case sc.in != s.app:
		return nil, fmt.Errorf("stream %s: emit: %w of the stream's own App; Send appends to streams of others", s.name, ErrNotAtomic)
	}
	o, err := s.settings()
	if err != nil {
		return nil, err
	}
	for i := range out {
		output, err := s.output(ctx, sc, o, out[i])
		if err != nil {
			return nil, fmt.Errorf("stream %s: emit record %d: %w", s.name, i, err)
		}
		outputs = append(outputs, output)
	}
	if _, err := s.sender(ctx); err != nil {
		return nil, err
	}
	if !sc.atomic.emit(outputs) {
		return nil, s.notAtomic()
	}
	return outputs, nil
}

func (s *Stream[T]) notAtomic() error {
	return fmt.Errorf("stream %s: emit: %w: set ProcessorOptions.Atomic, and use the context of the iteration (Events.Context); elsewhere, Send", s.name, ErrNotAtomic)
}

// output encodes a record.
func (s *Stream[T]) output(ctx context.Context, sc *scope, o *StreamOptions, out Outgoing[T]) (store.Output, error) {
	switch {
	case out.DedupID != "":
		return store.Output{}, errors.New("a DedupID has no meaning: what is emitted comes once")
	case !out.At.IsZero() || out.After != 0:
		return store.Output{}, errors.New("what is emitted cannot be delayed")
	}
	fields, partition, err := s.encoding.encode(o, out, nil)
	switch {
	case err != nil:
		return store.Output{}, err
	case len(fields) > mostOutputTexts:
		return store.Output{}, fmt.Errorf("it has more than %d fields", mostOutputTexts/2)
	}
	if err := sc.atomic.src.Reach(ctx, store.StreamPartition{Stream: s.name, Partition: partition}); err != nil {
		return store.Output{}, err
	}
	return store.Output{Stream: s.name, Partition: partition, Fields: fields, Sent: &s.sent.Sent, Together: together(o.MaxLen)}, nil
}

// together is how many changes may be in a commit of several iterations that emit to a partition of most entries: the commit waits
// until there is room for all of them, and others append meanwhile.
func together(most int64) int { return int(min(max(1, most/4), math.MaxInt32)) }

// mostOutputTexts bounds the fields and values of an output: a script unpacks them.
const mostOutputTexts = 4000
