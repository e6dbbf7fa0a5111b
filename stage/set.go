package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/sets"
	istage "github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/worker"
)

// Options configure a set. A zero field inherits from runnel.Options.Stream or Processor, then from the
// environment, then takes the default, as for streams and processors.
type Options struct {
	Partitions  int                 // take 256 for ten million entities
	Codec       codec.Codec         // of entities; not a codec.FieldCodec
	MaxRecord   int64               // largest entity, in bytes of memory
	Partitioner *runnel.Partitioner // of IDs

	Lease, Grace, JoinDelay time.Duration // as in runnel.ProcessorOptions

	Retry   *runnel.Retry // of stages that have none; its Order must be zero. Default Max 8
	Timeout time.Duration // of stages that have none; negative: none
}

// A Set holds the entities of one type, and runs stages over them. Its methods are safe for concurrent
// use, but for Stage.
type Set[T any] struct {
	*set
	wakes *runnel.Stream[T]
	id    func(T) string
}

// A set is a Set without its type.
type set struct {
	name     string
	app      *runnel.App
	opts     Options
	external external // nil: entities are in Redis
	stages   []*stage
	touches  places
	by       map[string]*stage
	count    setCounters

	mu    sync.Mutex
	begun bool // no more stages

	resolving sync.Mutex // held by begin, before mu; what follows it sets
	stream    *appview.Stream
	calls     *istage.Set
	owners    *istage.Owners
	retry     *retryqueue.Retry
	idOf      func(value any) (string, error)
}

var stageName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// New declares a set whose entities are in Redis. id returns the ID of an entity: any text but the empty
// one, a function of the value alone, which no stage changes. A nil opts is all defaults. New does no
// I/O. It panics as runnel.NewStream does, since the names of sets and streams are one space, and if the
// codec is a codec.FieldCodec.
func New[T any](app *runnel.App, name string, id func(T) string, opts *Options) *Set[T] {
	return newSet(app, name, id, nil, opts)
}

func newSet[T any](app *runnel.App, name string, id func(T) string, x external, opts *Options) *Set[T] {
	var o Options
	if opts != nil {
		o = *opts
	}
	where := "runnel: app " + app.Name() + ": set " + name + ": "
	err := (&StageOptions{Retry: o.Retry}).check(app)
	if _, fields := o.Codec.(codec.FieldCodec); fields {
		err = errFieldCodec
	} else if id == nil {
		err = errors.New("nil ID function")
	}
	if err != nil {
		panic(where + err.Error())
	}
	s := &Set[T]{set: &set{name: name, app: app, opts: o, external: x, by: map[string]*stage{}}, id: id}
	s.wakes = runnel.NewStream(app, name, id, &runnel.StreamOptions{
		Partitions: o.Partitions, Codec: o.Codec, MaxRecord: o.MaxRecord, Partitioner: o.Partitioner, MaxLen: wakesKept,
	})
	extension.Declare(s.wakes, sets.Kind, s.names)
	show(app, s.set)
	s.idOf = func(value any) (id string, err error) {
		defer recoverInto(&err)
		return s.id(value.(T)), nil
	}
	s.wakes.Process(istage.Processor, s.process, &runnel.ProcessorOptions{
		OnError: runnel.Halt, Lease: o.Lease, Grace: o.Grace, JoinDelay: o.JoinDelay, Timeout: -1,
	})
	return s
}

// touchesOfAll is how many touches one worker has at once: their entities are in its memory.
const touchesOfAll = 128

// wakesKept is the length of the log of a partition, which has nothing but wakes.
const wakesKept = 64

// Name returns the name of the set.
func (s *Set[T]) Name() string { return s.name }

// Stage registers a stage. when reports whether it wants to visit an entity now: it is asked after each
// change and right before the visit, must be fast and a function of the value alone, and may be called
// concurrently; nil: always. The name is the stage's identity: its visits are kept under it. A nil opts
// is all defaults. Stage panics on a name that is taken or has other characters than letters, digits,
// "_" and "-", on "stages", on a nil do, on options out of range, on the 97th stage of a set, and after
// Run or the first call that needed Redis.
func (s *Set[T]) Stage(name string, when func(e T) bool, do Func[T], opts *StageOptions) {
	one := &stage{name: name}
	if opts != nil {
		one.opts = *opts
	}
	if when != nil {
		one.when = func(value any) bool { return when(value.(T)) }
	}
	if do != nil {
		one.do = func(ctx context.Context, value any) (Result, any, error) {
			e := value.(T)
			r, err := do(ctx, &e)
			return r, e, err
		}
	}
	if err := s.add(one); err != nil {
		panic("runnel: app " + s.app.Name() + ": set " + s.name + ": Stage " + name + ": " + err.Error())
	}
}

func (s *set) add(one *stage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.begun:
		return errors.New("stages are registered before Run and before the first call that needs Redis")
	case !stageName.MatchString(one.name):
		return errors.New("a name has letters, digits, \"_\" and \"-\", at most 64")
	case one.name == istage.Processor:
		return errors.New("the name is reserved")
	case s.by[one.name] != nil:
		return errors.New("the set has a stage of that name already")
	case one.do == nil:
		return errors.New("nil function")
	case len(s.stages) == mostStages:
		return fmt.Errorf("a set has at most %d stages", mostStages)
	}
	if err := one.opts.check(s.app); err != nil {
		return err
	}
	s.stages, s.by[one.name] = append(s.stages, one), one
	return nil
}

// process runs the visits of one partition for one ownership. The log has nothing but wakes.
func (s *Set[T]) process(ctx context.Context, events *runnel.Events[T]) error {
	if err := s.begin(); err != nil {
		return err
	}
	o, done := newOwner(ctx, s.set, worker.OwnershipOf(ctx)), make(chan struct{})
	go func() {
		defer close(done)
		o.run()
	}()
	for range events.Raw() {
		o.isDue(istage.Touch)
		o.own.Wake()
		runtime.Gosched() // to the owner
	}
	select {
	case <-done:
	case <-o.calls.Done(): // the server may be silent
		o.end()
	}
	return nil
}

// begin resolves the settings, once. It does no I/O.
func (s *set) begin() error {
	s.resolving.Lock()
	defer s.resolving.Unlock()
	if s.calls != nil {
		return nil
	}
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	stream, client, inherited, err := appview.Of(s.app).Own(s.name)
	if err != nil {
		return err
	}
	s.stream = stream
	if s.retry, err = inherited.Retry(s.opts.Retry, defaultAttempts); err != nil {
		return err
	}
	for _, one := range s.stages {
		one.retry, one.limit = s.retry, inherited.Timeout
		if one.opts.Retry != nil {
			if one.retry, err = inherited.Retry(one.opts.Retry, defaultAttempts); err != nil {
				return err
			}
		}
		for _, limit := range []time.Duration{s.opts.Timeout, one.opts.Timeout} {
			if limit != 0 {
				one.limit = max(limit, 0)
			}
		}
		one.places.free = cmp.Or(one.opts.Concurrency, defaultConcurrency)
	}
	s.touches.free, s.touches.batch = touchesOfAll, touchesAtOnce
	calls := istage.New(client, s.name, s.external != nil, s.names()...)
	s.owners, s.calls = istage.NewOwners(calls), calls
	return nil
}

// names returns the names of the stages.
func (s *set) names() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.stages {
		names = append(names, one.name)
	}
	return names
}

// ready is begin, and ensures the set's metadata before the first call.
func (s *set) ready(ctx context.Context) error {
	if of, ok := ctx.Value(visitKey{}).(*visitScope); ok && of.played {
		return fmt.Errorf("set %s: runneltest plays stage %s without Redis: the function cannot call methods of sets", s.name, of.visit.Stage)
	}
	if err := s.begin(); err != nil {
		return err
	}
	return s.stream.Ensure(ctx)
}

// encode returns what is stored of a value, which must have that ID.
func (s *set) encode(id string, value any) (payload string, err error) {
	payload, is, _, err := s.encodeAny(value)
	if err == nil && is != id {
		err = errID(id, is)
	}
	return payload, err
}

// encodeAny returns what is stored of a value, its ID and its partition.
func (s *set) encodeAny(value any) (payload, id string, partition int, err error) {
	if id, err = s.idOf(value); err != nil {
		return "", "", 0, fmt.Errorf("id: %w", err)
	}
	if id == "" {
		return "", "", 0, errors.New("the ID is empty")
	}
	if s.external != nil {
		return "", id, s.partition(id), nil
	}
	fields, partition, err := s.stream.Encode(value)
	if err != nil {
		return "", id, 0, err
	}
	if len(fields) != 2 || fields[0] != payloadField {
		return "", "", 0, errFieldCodec
	}
	return fields[1], id, partition, nil
}

// partition returns the partition of an ID.
func (s *set) partition(id string) int { return s.stream.Partition(id, s.stream.Meta.Partitions) }

// decode returns the value of a payload that is stored under an ID.
func (s *set) decode(id, payload string) (any, error) {
	value, err := s.stream.Decode(redisconn.Entry{ID: "0-1", Values: map[string]any{payloadField: payload}}, s.stream.MaxRecord)
	if err != nil {
		return nil, err
	}
	is, err := s.idOf(value)
	if err == nil && is != id {
		err = errID(id, is)
	}
	return value, err
}

var errFieldCodec = errors.New("the codec is a codec.FieldCodec: a FieldCodec stores no single value")

// payloadField is the field of a record in an entry.
const payloadField = "data"

// get returns what is stored of an entity: ErrNotFound if nothing is.
func (s *set) get(ctx context.Context, partition int, id string) (entity, error) {
	if s.external != nil {
		found, err := s.external.load(ctx, []string{id})
		if err != nil {
			return entity{}, err
		}
		one, there := found[id]
		if !there {
			return entity{}, ErrNotFound
		}
		return one, nil
	}
	e, err := s.calls.Get(ctx, partition, id)
	if err != nil {
		err = &loadError{err}
	} else if e.Version == 0 {
		err = ErrNotFound
	}
	return entity{version: e.Version, passes: e.Passes, payload: e.Payload}, err
}
