package runnel

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// A ProcessFunc processes the events of one partition. It is called when the worker gains
// the partition, and again after an error or a return. So variables declared before its
// loop are the partition's state for as long as this worker owns it. Calls for different
// partitions run concurrently.
//
// owned ends when the partition is lost, or the grace period of a release or shutdown is
// over. It is for the code before and after the loop. In the loop use events.Context(),
// which also ends after ProcessorOptions.Timeout, and has the values of middleware.
type ProcessFunc[T any] func(owned context.Context, events *Events[T]) error

// Each returns a ProcessFunc that calls fn with every event; of a nil fn nil, which Process
// refuses.
func Each[T any](fn func(ctx context.Context, e *Event, record T) error) ProcessFunc[T] {
	if fn == nil {
		return nil
	}
	return func(_ context.Context, events *Events[T]) error {
		for e, record := range events.All() {
			if err := fn(events.Context(), e, record); err != nil {
				return err
			}
		}
		return nil
	}
}

// EachBatch returns a ProcessFunc that calls fn with batches; see Take for n
// and within. It panics if n is below 1. Of a nil fn it returns nil, as Each does.
func EachBatch[T any](n int, within time.Duration, fn func(ctx context.Context, e []*Event, records []T) error) ProcessFunc[T] {
	if fn == nil {
		return nil
	}
	mustTake(n, within)
	return func(_ context.Context, events *Events[T]) error {
		for batch, records := range events.Take(n, within).All() {
			if err := fn(events.Context(), batch, records); err != nil {
				return err
			}
		}
		return nil
	}
}

// A Policy decides what follows an error that no middleware handled.
type Policy int

const (
	Halt       Policy = iota + 1 // stop the worker; Run returns the error. The event is not acked. The default
	Quarantine                   // stop this partition until an operator resumes it; others go on. The event is not acked
	Ignore                       // count it, log it, ack the event and go on
)

// String returns the name of the policy.
func (p Policy) String() string {
	return nameOf("Policy", int(p), "halt", "quarantine", "ignore")
}

// Reads is how a processor reads its partitions and stores how far it has come.
type Reads int

const (
	// ByGroup reads with XREADGROUP and acks with XACK: Redis keeps which events were delivered and are not
	// acked. The default.
	ByGroup Reads = iota + 1
	// ByPosition reads with XREAD, and stores one position for each partition. It takes a fraction of the
	// server's work for an event. Nothing else changes but what the server shows of it: see docs/delivery.md.
	ByPosition
)

// String returns the name of the way to read.
func (r Reads) String() string { return nameOf("Reads", int(r), "group", "position") }

// ProcessorOptions configure a processor. A zero field inherits from
// Options.Processor, then from the environment, then takes the default.
type ProcessorOptions struct {
	OnError    Policy       // RUNNEL_ON_ERROR; default Halt
	Middleware []Middleware // outermost first, inside those of Options.Processor

	// Retry sets how often a failing event is attempted, and which events wait meanwhile.
	// After the last attempt the event is a dead letter; an event that cannot be decoded
	// is one at once. OnError then decides only about errors that are no event's fault.
	// nil: OnError decides about all.
	Retry *Retry

	// Start is where the processor begins in a partition that it never processed:
	// StartBeginning, the oldest event that is there, which is the default; StartEnd,
	// with the events sent from then on; or an entry ID, after which it begins. When
	// Redis loses its data, a worker that lives on begins at the beginning.
	Start string

	// Lease is how long a partition stays assigned to a worker that has stopped
	// responding; a crash stops its partitions that long. RUNNEL_LEASE; default 10 s, at
	// least 500 ms.
	Lease time.Duration
	// Grace is how long a function may go on after a release or shutdown was requested,
	// before its context ends. Negative: not at all. RUNNEL_GRACE; default 8 s.
	Grace time.Duration
	// Timeout is how long an iteration may take, from the moment at which the function
	// gets its events. Then the context of the iteration ends: Events.Context, not the
	// ctx of a ProcessFunc. ErrTimeout is in the chain of its cause. An error that the
	// function returns afterwards has ErrTimeout in its chain, too, and is treated as any
	// other error. A function that goes on for another Timeout, at least a second, is
	// reported as stuck. The Timeout covers each call of the function, not the
	// middleware. Negative: none, even where one would be inherited. RUNNEL_TIMEOUT;
	// default none.
	Timeout time.Duration
	// JoinDelay is how long a starting worker waits before it takes part, so
	// that workers that start together share out the partitions once.
	// RUNNEL_JOIN_DELAY; default 0.
	JoinDelay time.Duration

	// Reads is how positions are kept. A processor may change it in a rolling restart: each takeover finds the
	// position, stored in either way. RUNNEL_READS, group or position; default ByGroup.
	Reads Reads

	// Tables are those that the function changes (Table.Rows). Each is of the processor's
	// stream, and of no other processor. They make the processor Atomic.
	Tables []State
	// Atomic commits what an iteration emits (Stream.Emit) and changes (Table.Rows) in one
	// step with its ack: all of it, once, or nothing. The processor reads ByPosition. Of a
	// batch that fails, also by FailedEvents, every event has failed.
	Atomic bool

	// Prefetch is how many events are read ahead per partition, and how many may be
	// processed and not yet acked. RUNNEL_PREFETCH; default 1024. By default only as many
	// are read ahead as the function processes in about a second, but at least 8.
	Prefetch int
	adapt    bool // the default
	// PrefetchBytes bounds the bytes read ahead per partition; a single event
	// may be larger. RUNNEL_PREFETCH_BYTES; default 8 MiB.
	PrefetchBytes int64
	// ReadConns is how many connections read for this processor in each worker at most: one for
	// 16 partitions while little comes, all of them while more does, or there is a backlog.
	// In a Redis Cluster each reads from one partition, or from several in turn if there
	// are more partitions than connections. RUNNEL_READ_CONNS; default 8, in a cluster
	// 32.
	ReadConns int
	anyConns  bool // the default
}

// Where a processor begins that never ran; see ProcessorOptions.Start.
const (
	StartBeginning = "0-0"
	StartEnd       = "$"
)

var entryID = regexp.MustCompile(`^[0-9]{1,18}(-[0-9]{1,18})?$`)

// Process registers fn to run over every partition of the stream. The name is the
// processor's identity: its position in each partition is kept under it. A nil opts is
// all defaults. It panics if the name is taken or has other characters than letters,
// digits, "_" and "-", if fn is nil, and after Run.
func (s *Stream[T]) Process(name string, fn ProcessFunc[T], opts *ProcessorOptions) {
	where := "runnel: stream " + s.name + ": Process " + name + ": "
	mustName(where, name, false)
	if fn == nil {
		panic(where + "nil function")
	}
	o := *cmp.Or(opts, &ProcessorOptions{})
	if err := o.check(); err != nil {
		panic(where + err.Error())
	}
	o.Atomic = o.Atomic || len(o.Tables) > 0
	s.app.register(func() {
		if slices.ContainsFunc(s.app.processors, func(p *registration) bool { return p.stream == s.name && p.name == name }) {
			panic(where + "the stream has a processor of that name already")
		}
		s.declaration.own(where, name, o.Tables)
		if o.Atomic || s.app.opts.Processor.Atomic {
			s.declaration.atomic = append(s.declaration.atomic, name)
			s.app.uses(store.Tables)
		}
		s.app.processors = append(s.app.processors, &registration{
			stream: s.name, name: name, opts: o, of: s.declaration,
			build: func(e *ProcessorOptions, log *slog.Logger, workerName string) (*worker.Processor, error) {
				return buildProcessor(s, name, fn, e, log, workerName)
			},
		})
	})
}

// registration is a call of Process without its record type.
type registration struct {
	stream, name string
	opts         ProcessorOptions
	of           *declaration
	build        func(effective *ProcessorOptions, log *slog.Logger, workerName string) (*worker.Processor, error)
}

func (o *ProcessorOptions) check() error {
	switch {
	case o.OnError < 0 || o.OnError > Ignore:
		return fmt.Errorf("OnError: unknown policy %d", o.OnError)
	case o.Reads < 0 || o.Reads > ByPosition:
		return fmt.Errorf("option Reads: unknown value %d", o.Reads)
	case o.Reads == ByGroup && (o.Atomic || len(o.Tables) > 0):
		return fmt.Errorf("option Reads: ByGroup: an Atomic processor reads ByPosition")
	case slices.ContainsFunc(o.Tables, func(s State) bool { return s == nil || s.isNil() }):
		return fmt.Errorf("option Tables: a nil Table: call NewTable before Process")
	case o.Start != "" && o.Start != StartEnd && !entryID.MatchString(o.Start):
		return fmt.Errorf("Start %q is neither StartBeginning, StartEnd nor an entry ID", o.Start)
	case o.Lease != 0 && o.Lease < minLease:
		return fmt.Errorf("Lease %v is below %v", o.Lease, minLease)
	case o.JoinDelay < 0:
		return fmt.Errorf("JoinDelay %v is negative", o.JoinDelay)
	case o.Prefetch < 0:
		return fmt.Errorf("Prefetch %d is negative", o.Prefetch)
	case o.PrefetchBytes < 0:
		return fmt.Errorf("PrefetchBytes %d is negative", o.PrefetchBytes)
	case o.ReadConns < 0:
		return fmt.Errorf("ReadConns %d is negative", o.ReadConns)
	}
	if slices.ContainsFunc(o.Middleware, func(m Middleware) bool { return m == nil }) {
		return fmt.Errorf("nil Middleware")
	}
	return o.Retry.check()
}

func buildProcessor[T any](s *Stream[T], name string, fn ProcessFunc[T], o *ProcessorOptions, log *slog.Logger, workerName string) (*worker.Processor, error) {
	so, err := s.settings()
	if err != nil {
		return nil, err
	}
	shared := &eventSource{processor: name, key: func(e *Event) (string, error) { return s.encoding.keyWithin(e, so.MaxRecord) }}
	retry := o.Retry.build()
	_, gates := s.kindOf()
	return &worker.Processor{
		Stream: s.name, Name: name, Partitions: so.Partitions,
		Start: o.Start, Lease: o.Lease, Grace: max(o.Grace, 0), JoinDelay: o.JoinDelay,
		Prefetch: o.Prefetch, Adapt: o.adapt, PrefetchBytes: o.PrefetchBytes, ReadConns: o.ReadConns, ByPosition: o.Reads == ByPosition || o.Atomic,
		Atomic: o.Atomic, Tables: configsOf(o.Tables),
		Retry: retry, MaxLen: so.MaxLen, Key: shared.keyOf, Gates: gates,
		Consume: func(ctx context.Context, in worker.Input) error {
			c := &consumer[T]{
				atomic:    newAtomicState(in, tablesOf(o.Tables)),
				batcher:   batcher[T]{stream: s, shared: shared, src: in, policy: o.OnError, retry: retry, straight: o.straight()},
				processor: name, fn: fn, timeout: o.Timeout, log: log, worker: workerName,
			}
			return c.run(ctx, o.Middleware)
		},
	}, nil
}
