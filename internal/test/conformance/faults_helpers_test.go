package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// shortExpiry keeps tests of lost leases short, and lets a busy machine refresh the others in most cases. A tracker
// records where it did not.
const shortExpiry = 3 * time.Second

type parcel struct {
	Key string `json:"key"`
	Seq int64  `json:"seq"`
	Pad string `json:"pad,omitempty"`
}

func parcelKey(p parcel) string { return p.Key }

// A parcelApp is the app "post" with its stream "parcels" in one program. It counts requests and
// dials, and keeps its log lines.
type parcelApp struct {
	t        testing.TB
	name     string // of the worker
	app      *runnel.App
	parcels  *runnel.Stream[parcel]
	log      *logbook
	requests *redistest.Counter
	dials    atomic.Int64
	hasty    bool // its leases are short

	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run, once done is closed
}

// newParcelApp makes an app that talks to the server at url. adjust may change
// the options; those of Stream and Processor are inherited.
func newParcelApp(t testing.TB, url, name string, adjust func(*runnel.Options)) *parcelApp {
	t.Helper()
	a := &parcelApp{t: t, name: name, log: &logbook{}}
	ro, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	a.requests = redistest.CountingDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		a.dials.Add(1)
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
	})
	ro.Dialer = a.requests.Dial
	shared := redis.NewClient(ro)
	t.Cleanup(func() { shared.Close() })
	o := runnel.Options{Redis: shared, WorkerName: name, Logger: a.log.Logger()}
	if adjust != nil {
		adjust(&o)
	}
	a.hasty = o.Processor.Lease == shortExpiry
	a.app = runnel.New("post", &o)
	t.Cleanup(func() { a.app.Close() })
	a.parcels = runnel.NewStream(a.app, "parcels", parcelKey, nil)
	return a
}

// newProducer makes an app of that many partitions, without processors. Its connections are plain:
// a connection closed by the server is noticed before it is used again.
func newProducer(t testing.TB, url string, partitions int) *parcelApp {
	t.Helper()
	return newParcelApp(t, url, "producer", func(o *runnel.Options) {
		o.Stream.Partitions = partitions
		o.Redis, o.RedisURL = nil, url
	})
}

// run starts Run, which ends with the test at the latest.
func (a *parcelApp) run() *parcelApp {
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	a.cancel, a.done = cancel, make(chan struct{})
	go func() {
		defer close(a.done)
		a.err = a.app.Run(ctx)
	}()
	a.t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

// stop ends Run; an error fails the test.
func (a *parcelApp) stop() {
	a.t.Helper()
	a.cancel()
	if err := a.ended(60 * time.Second); err != nil {
		a.t.Errorf("worker %s: Run returned %v", a.name, err)
	}
}

// ended waits for Run to end by itself and returns its error.
func (a *parcelApp) ended(limit time.Duration) error {
	a.t.Helper()
	select {
	case <-a.done:
		return a.err
	case <-time.After(limit):
		a.t.Fatalf("worker %s did not end within %v\n%s", a.name, limit, a.log.String())
		return nil
	}
}

// ready waits until the workers own their assignments, all in the same membership.
func ready(t testing.TB, limit time.Duration, workers ...*parcelApp) time.Duration {
	t.Helper()
	why := map[string]error{}
	defer func() {
		if t.Failed() {
			t.Logf("not ready: %v", why)
		}
	}()
	return await(t, "all workers to be ready", limit, func() bool {
		for _, a := range workers {
			why[a.name] = a.app.Ready()
			select {
			case <-a.done:
				why[a.name] = fmt.Errorf("it has ended: %w", a.err)
			default:
			}
		}
		return !slices.ContainsFunc(workers, func(a *parcelApp) bool { return why[a.name] != nil })
	})
}

// await polls until done reports true, and returns how long that took.
func await(t testing.TB, what string, limit time.Duration, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	if !redistest.Within(limit, done) {
		t.Fatalf("waited %v for %s", limit, what)
	}
	return time.Since(began)
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(redistest.Patience):
		t.Fatalf("waited %v for %s", redistest.Patience, what)
		panic("unreachable")
	}
}

func (a *parcelApp) send(records ...parcel) {
	a.t.Helper()
	if err := a.parcels.Send(a.t.Context(), records...); err != nil {
		a.t.Fatal(err)
	}
}

func keysOf(partitions int) []string {
	keys := make([]string, partitions)
	for n, left := 0, partitions; left > 0; n++ {
		key := fmt.Sprint("k", n)
		if p := runnel.XXHash.Func(key, partitions); keys[p] == "" {
			keys[p] = key
			left--
		}
	}
	return keys
}

// A tracker records the actions of all workers of a test, for history to check.
type tracker struct {
	history *history.Log

	mu    sync.Mutex
	seq   map[place]int64  // largest completed
	owner map[place]string // the worker that began last
	total int
}

type place struct {
	processor string
	partition int
}

func newTracker(h *history.Log) *tracker {
	return &tracker{history: h, seq: map[place]int64{}, owner: map[place]string{}}
}

// process registers a processor that does work and reports to the tracker.
func (tr *tracker) process(a *parcelApp, name string, o *runnel.ProcessorOptions, work func(context.Context, *runnel.Event, parcel) error) {
	log := tr.history.As(a.name)
	each := runnel.Each(func(ctx context.Context, e *runnel.Event, p parcel) error {
		it, err := log.Begin(history.Record{
			Stream: e.Stream, Processor: name, Partition: e.Partition, Epoch: e.Epoch,
			IDs: []string{e.ID}, Keys: []string{p.Key}, Seqs: []int64{p.Seq},
		})
		if err != nil {
			return err
		}
		tr.begin(place{name, e.Partition}, a.name)
		if work != nil {
			if err := work(ctx, e, p); err != nil {
				it.Fail()
				return err
			}
		}
		if err := it.Complete(); err != nil {
			return err
		}
		tr.complete(place{name, e.Partition}, p.Seq)
		return nil
	})
	a.parcels.Process(name, func(ctx context.Context, events *runnel.Events[parcel]) error {
		err := each(ctx, events)
		if a.hasty && errors.Is(context.Cause(ctx), runnel.ErrLost) {
			_ = log.Fault(a.name, history.Lost)
		}
		return err
	}, o)
}

// worker runs a worker of the processor "check" with short leases.
func (tr *tracker) worker(t testing.TB, url, name string, partitions int) *parcelApp {
	a := newParcelApp(t, url, name, func(o *runnel.Options) {
		o.Stream.Partitions, o.Processor.Lease = partitions, shortExpiry
	})
	tr.process(a, "check", nil, nil)
	return a.run()
}

func (tr *tracker) begin(at place, worker string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.owner[at] = worker
}

func (tr *tracker) complete(at place, seq int64) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.seq[at] = max(tr.seq[at], seq)
	tr.total++
}

// passed reports whether the processor has completed at least this seq in all of
// so many partitions.
func (tr *tracker) passed(processor string, partitions int, seq int64) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for p := range partitions {
		if tr.seq[place{processor, p}] < seq {
			return false
		}
	}
	return true
}

func (tr *tracker) completed() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.total
}

// owners returns the worker that last began an iteration, by partition.
func (tr *tracker) owners(processor string) map[int]string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	out := map[int]string{}
	for at, worker := range tr.owner {
		if at.processor == processor {
			out[at.partition] = worker
		}
	}
	return out
}

// judge checks the history against the contents of the partitions.
func (tr *tracker) judge(t testing.TB, srv *redistest.Server, partitions int, o history.Options) *history.Report {
	t.Helper()
	rdb := srv.Client(t)
	for p := range partitions {
		for _, e := range rdb.XRange(t.Context(), partitionKey(p), "-", "+").Val() {
			j, err := decodeParcel(e)
			if err == nil {
				err = tr.history.Write(history.Record{
					Kind: history.Appended, Stream: "parcels", Partition: p, IDs: []string{e.ID}, Keys: []string{j.Key}, Seqs: []int64{j.Seq},
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	report := history.Check(tr.history.Records(), o)
	t.Log(report)
	if !report.OK {
		t.Error("the history breaks a promise")
	}
	return report
}

func decodeParcel(e redis.XMessage) (p parcel, err error) {
	data, _ := e.Values["data"].(string)
	return p, codec.MsgPack.Decode([]byte(data), &p)
}

func partitionKey(p int) string { return fmt.Sprint("__strm:post.parcels.", p) }

// unrest describes partitions that are not at rest. At rest there is one group per processor, which
// has read everything and has nothing pending.
func unrest(t testing.TB, rdb *redis.Client, partitions, processors int) string {
	var b strings.Builder
	for p := range partitions {
		last := rdb.XInfoStream(t.Context(), partitionKey(p)).Val().LastGeneratedID
		groups, err := rdb.XInfoGroups(t.Context(), partitionKey(p)).Result()
		if err != nil || len(groups) != processors {
			fmt.Fprintf(&b, "partition %d: %d groups, %v\n", p, len(groups), err)
		}
		for _, g := range groups {
			if g.Pending != 0 || g.LastDeliveredID != last {
				fmt.Fprintf(&b, "partition %d: group %s has %d pending and is at %s of %s\n", p, g.Name, g.Pending, g.LastDeliveredID, last)
			}
		}
	}
	return b.String()
}

// awaitRest waits for rest, and fails with what prevents it.
func awaitRest(t testing.TB, srv *redistest.Server, partitions, processors int) {
	t.Helper()
	rdb := srv.Client(t)
	left := ""
	redistest.Eventually(t, "at rest", func() bool {
		left = unrest(t, rdb, partitions, processors)
		return left == ""
	}, func() string { return left })
}
