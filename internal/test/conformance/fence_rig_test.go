package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// patience bounds the wait for expected events. internal/test/mutants sets less for programs that
// may wait for ever.
var patience = 10 * time.Second

// calm is an expiry that a busy machine does not miss, for tests that wait for none.
const calm = 5 * time.Second

const patienceVariable = "RUNNEL_CONFORMANCE_PATIENCE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		os.Exit(children[os.Args[1]](os.Args[2:]))
	}
	if d, err := time.ParseDuration(os.Getenv(patienceVariable)); err == nil {
		patience = d
	}
	flag.Parse()
	// Most cases only wait: for a deadline, a refresh, an expiry.
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

// children are alternative main functions of the test binary, by its first argument.
var children = map[string]func(args []string) (exit int){}

type job struct {
	Key string `json:"key"`
	Seq int64  `json:"seq"`
}

// A rig is an app with one stream and one processor, its workers, and their history.
type rig struct {
	busy       bool // a lease may lapse without a fault: the rig notes that
	t          testing.TB
	srv        *redistest.Server
	rdb        *redis.Client // sees the server directly
	client     *store.Client
	keys       keys.Keys
	stream     string
	processor  string
	partitions int
	options    runnel.ProcessorOptions
	log        *history.Log
	records    func() []history.Record
	members    []*member

	mu     sync.Mutex
	during func(ctx context.Context, e *runnel.Event) error // what an iteration does; nil: nothing
	seqs   map[int]int64
	events map[string]chan struct{} // by "partition ID", closed when first completed
}

var hold = faultproxy.Hold

// The names of most rigs; the app is named after the test.
const streamName, processorName = "jobs", "check"

// newRig makes a rig on a server of its own.
func newRig(t testing.TB, partitions int, expiry time.Duration) *rig {
	t.Helper()
	return rigOn(t, redistest.Start(t), "fence", streamName, processorName, partitions, expiry)
}

func rigOn(t testing.TB, srv *redistest.Server, app, stream, processor string, partitions int, expiry time.Duration) *rig {
	t.Helper()
	k := keys.Keys{App: app, Layout: keys.Standalone}
	client, err := store.Open(redisconn.Options{URL: srv.URL(), Keys: k})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	log := history.Memory()
	return &rig{
		t: t, srv: srv, rdb: srv.Client(t), client: client, keys: k,
		stream: stream, processor: processor, partitions: partitions,
		options: runnel.ProcessorOptions{Lease: expiry, Grace: 10 * time.Second},
		log:     log, records: log.Records, seqs: map[int]int64{}, events: map[string]chan struct{}{},
	}
}

// A member is a worker behind a proxy of its own.
type member struct {
	name   string
	proxy  *faultproxy.Proxy
	app    *runnel.App
	output *redistest.Log // shown when the test fails
	lost   atomic.Int64   // functions whose context ended with ErrLost
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
}

// start starts a worker.
func (r *rig) start(name string) *member {
	r.t.Helper()
	return r.startVia(name, faultproxy.Start(r.t, r.srv.Addr()))
}

// startReady starts a worker, and returns it with its executor ID once it is ready.
func (r *rig) startReady(name string) (m *member, executor string) {
	r.t.Helper()
	m = r.start(name)
	return m, r.ready(m)
}

// startVia starts a worker behind a proxy that may have rules already.
func (r *rig) startVia(name string, proxy *faultproxy.Proxy) *member {
	r.t.Helper()
	m := &member{name: name, proxy: proxy, output: &redistest.Log{}, done: make(chan struct{})}
	m.app = runnel.New(r.keys.App, &runnel.Options{
		RedisURL: "redis://" + proxy.Addr(), WorkerName: name,
		Logger: slog.New(slog.NewTextHandler(m.output, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	log := r.log.As(name)
	jobs := runnel.NewStream(m.app, r.stream, func(j job) string { return j.Key },
		&runnel.StreamOptions{Partitions: r.partitions, MaxLen: 1 << 40})
	options := r.options
	jobs.Process(r.processor, func(ctx context.Context, events *runnel.Events[job]) error {
		defer func() {
			if errors.Is(context.Cause(ctx), runnel.ErrLost) {
				m.lost.Add(1)
				if r.busy {
					_ = log.Fault(name, history.Lost)
				}
			}
		}()
		for e, j := range events.All() {
			if err := r.iterate(events.Context(), log, e, j); err != nil {
				return err
			}
		}
		return nil
	}, &options)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.err = m.app.Run(ctx)
	}()
	r.members = append(r.members, m)
	r.t.Cleanup(func() {
		if r.t.Failed() {
			m.end(time.Second)
			r.t.Logf("log of worker %s:\n%s", name, tail(m.output.String()))
		} else if !m.end(patience) {
			r.t.Errorf("worker %s does not end", name)
		}
		m.app.Close()
	})
	return m
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// releases returns how many releases the worker has logged.
func (m *member) releases() int {
	return strings.Count(m.output.String(), "partition is being released")
}

// end stops a worker and reports whether it ended in time.
func (m *member) end(limit time.Duration) bool {
	m.cancel()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-m.done:
		return true
	case <-timer.C:
		return false
	}
}

func (r *rig) iterate(ctx context.Context, log *history.Log, e *runnel.Event, j job) error {
	it, err := r.begin(log, e, j)
	if err != nil {
		return err
	}
	r.mu.Lock()
	during := r.during
	r.mu.Unlock()
	if during != nil {
		if err := during(ctx, e); err != nil {
			return errors.Join(err, it.Fail())
		}
	}
	err = it.Complete()
	r.completed(e.Partition, e.ID)
	return err
}

func (r *rig) begin(log *history.Log, e *runnel.Event, j job) (*history.Iteration, error) {
	return log.Begin(history.Record{
		Stream: e.Stream, Processor: r.processor, Partition: e.Partition, Epoch: e.Epoch,
		IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq},
	})
}

// hook sets the body of iterations from now on.
func (r *rig) hook(during func(ctx context.Context, e *runnel.Event) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.during = during
}

// iterateAs records an iteration that no worker made.
func (r *rig) iterateAs(worker string, partition int, epoch int64, id string, seq int64) {
	r.t.Helper()
	it, err := r.log.As(worker).Begin(history.Record{
		Stream: r.stream, Processor: r.processor, Partition: partition, Epoch: epoch,
		IDs: []string{id}, Keys: []string{fmt.Sprint("k", partition)}, Seqs: []int64{seq},
	})
	if err == nil {
		err = it.Complete()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// fault records a fault of a worker that excuses repeats; "" means all workers.
func (r *rig) fault(worker, kind string) {
	r.t.Helper()
	if err := r.log.Fault(worker, kind); err != nil {
		r.t.Fatal(err)
	}
}

// add appends n events to a partition, with IDs given by Redis.
func (r *rig) add(partition, n int) (ids []string) {
	r.t.Helper()
	for range n {
		ids = append(ids, r.addID(partition, "*"))
	}
	return ids
}

func (r *rig) addID(partition int, id string) string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs[partition]++
	j := job{Key: fmt.Sprint("k", partition), Seq: r.seqs[partition]}
	data, err := codec.MsgPack.Encode(j)
	if err != nil {
		r.t.Fatal(err)
	}
	id, err = r.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: r.partition(partition), ID: id, Values: []any{"data", data}}).Result()
	if err == nil {
		err = r.log.As("producer").Sent(r.stream, partition, id, j.Key, j.Seq)
	}
	if err != nil {
		r.t.Error(err)
	}
	return id
}

// feed appends to all partitions until stop is called.
func (r *rig) feed(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for p := range r.partitions {
				r.addID(p, "*")
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	stop = func() {
		cancel()
		wg.Wait()
	}
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) partition(n int) string { return r.keys.Partition(r.stream, n) }
func (r *rig) lock(n int) string      { return r.keys.Lock(r.stream, r.processor, n) }
func (r *rig) own(n int) string       { return r.keys.Ownership(r.stream, r.processor, n) }
func (r *rig) membership() string     { return r.keys.Membership(r.stream, r.processor) }
func (r *rig) place(n int) store.Partition {
	return r.client.Partition(r.stream, r.processor, n)
}

// event is closed when the event is first completed.
func (r *rig) event(partition int, id string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := fmt.Sprint(partition, " ", id)
	c, ok := r.events[name]
	if !ok {
		c = make(chan struct{})
		r.events[name] = c
	}
	return c
}

func (r *rig) completed(partition int, id string) {
	c := r.event(partition, id)
	select {
	case <-c:
	default:
		close(c)
	}
}

func (r *rig) await(partition int, ids ...string) {
	r.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, id := range ids {
		select {
		case <-r.event(partition, id):
		case <-timer.C:
			r.t.Fatalf("event %s of partition %d is not processed within %v\n%s", id, partition, patience, r.unrest())
		}
	}
}

func (r *rig) eventually(what string, done func() bool) {
	r.t.Helper()
	if !redistest.Within(patience, done) {
		r.t.Fatalf("not within %v: %s\n%s", patience, what, r.unrest())
	}
}

func (r *rig) get(key string) string { return r.rdb.Get(context.Background(), key).Val() }
