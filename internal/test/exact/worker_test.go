// The worker processes: two Atomic processors in a chain, each with two tables.

//go:build unix

package exact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/exact"
)

const (
	appName  = "exact"
	lease    = time.Second
	grace    = 5 * time.Second
	attempts = 3
	narrow   = 40 // the length of a stream that is often full
	ttl      = 150 * time.Millisecond
	pause    = 100 * time.Millisecond // behind which a row of "visits" ends
)

// names of the streams, and of the processors by which events of one become events of the next.
var (
	streams    = []string{"in", "mid", "out"}
	processors = []string{"fold", "refold"}
)

// A setup says what an app is like. Workers get it as JSON.
type setup struct {
	URL    string
	Name   string
	Layout string // of keys; "": the server's
	Safe   bool   // a replica confirms what counts
	Parts  [3]int
	Order  runnel.RetryOrder // of the first processor; 0: it has no Retry
	Policy runnel.Policy     // of the first processor
	Batch  int               // events at a time, of the first
	Twice  bool              // middleware of the first calls next again
	Narrow bool              // the second stream is often full
	TTL    bool              // of rows by key
	Clock  bool              // the server's clock is set now and then
}

const setupVariable = "RUNNEL_EXACT_SETUP"

func (s setup) String() string {
	b, _ := json.Marshal(s)
	return string(b)
}

// An app is what workers and producers declare.
type app struct {
	setup
	*runnel.App
	streams []*runnel.Stream[exact.Mark]
	ends    *runnel.Stream[exact.Mark] // what has ended in any stage
}

func (s setup) declare(url string) *app {
	a := &app{setup: s}
	var durability runnel.Durability
	if s.Safe {
		durability = runnel.Durability{MinReplicas: 1, Timeout: time.Second}
	}
	a.App = runnel.New(appName, &runnel.Options{
		Durability: durability,
		RedisURL:   url, WorkerName: s.Name, KeyLayout: runnel.KeyLayout(s.Layout), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Processor: runnel.ProcessorOptions{Lease: lease, Grace: grace},
	})
	for i, name := range streams {
		opts := &runnel.StreamOptions{Partitions: s.Parts[i], MaxLen: 1 << 40, Codec: codec.JSON}
		if i == 1 && s.Narrow {
			opts.MaxLen = narrow
		}
		a.streams = append(a.streams, runnel.NewStream(a.App, name, keyOf, opts))
	}
	a.ends = runnel.NewStream(a.App, "ends", keyOf, &runnel.StreamOptions{Partitions: endParts, MaxLen: 1 << 40, Codec: codec.JSON})
	return a
}

func keyOf(m exact.Mark) string { return m.Key }

// endParts is how many partitions the stream "ends" has.
const endParts = 3

// A counter is a processor of one stream that emits to the next.
type counter struct {
	*app
	from, to    *runnel.Stream[exact.Mark]
	keys, parts *runnel.Table[exact.Row]
	visits      *runnel.Table[exact.Row]
	first       bool
}

func (a *app) count(i int) {
	c := &counter{app: a, from: a.streams[i], to: a.streams[i+1], first: i == 0}
	opts := &runnel.TableOptions{Codec: codec.JSON}
	if a.TTL {
		opts.TTL = ttl
	}
	c.keys = runnel.NewTable[exact.Row](c.from, "keys", opts)
	c.parts = runnel.NewTable[exact.Row](c.from, "parts", &runnel.TableOptions{Codec: codec.JSON, Local: true})
	c.visits = runnel.NewTable[exact.Row](c.from, "visits", &runnel.TableOptions{Codec: codec.JSON, TTL: pause})
	c.visits.OnExpire(func(ctx context.Context, key string, row exact.Row) error {
		partition := runnel.XXHash.Func(key, a.Parts[i])
		return a.ends.Emit(ctx, exact.EndOf(processors[i], partition, key, row, c.visits.Rows(ctx).Now().UnixMilli()))
	})
	o := &runnel.ProcessorOptions{Tables: []runnel.State{c.keys, c.parts, c.visits}}
	each := func(ctx context.Context, e *runnel.Event, m exact.Mark) error {
		return c.process(ctx, []*runnel.Event{e}, []exact.Mark{m})
	}
	fn := runnel.Each(each)
	if c.first {
		o.OnError = a.Policy
		if a.Order != 0 {
			o.Retry = &runnel.Retry{Max: attempts, Order: a.Order, MinBackoff: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
		}
		if a.Twice {
			o.Middleware = []runnel.Middleware{again}
		}
		if a.Batch > 1 {
			fn = runnel.EachBatch(a.Batch, 5*time.Millisecond, c.process)
		}
	}
	c.from.Process(processors[i], fn, o)
}

// again calls next a second time: always after an error, sometimes after none.
func again(next runnel.Handler) runnel.Handler {
	return func(ctx context.Context, b *runnel.Batch) error {
		err := next(ctx, b)
		if ctx.Err() == nil && (err != nil || rand.IntN(3) == 0) {
			err = next(ctx, b)
		}
		return err
	}
}

var errBad = errors.New("a bad event")

// hopeless reports whether an event fails each time.
func hopeless(m exact.Mark) bool { return m.N%50 == 7 }

// process counts events, and may fail behind that.
func (c *counter) process(ctx context.Context, events []*runnel.Event, marks []exact.Mark) error {
	if !c.first && c.Narrow {
		time.Sleep(rand.N(2 * time.Millisecond))
	}
	keys, parts, visits := c.keys.Rows(ctx), c.parts.Rows(ctx), c.visits.Rows(ctx)
	var failed []*runnel.Event
	for i, e := range events {
		one, nonce := exact.Entry{Partition: e.Partition, ID: e.ID, Mark: marks[i]}, rand.Uint64()
		until := uint64(0)
		if c.TTL {
			until = uint64(keys.Now().Add(ttl).UnixMilli())
		}
		row := keys.Update(marks[i].Key, func(r exact.Row) exact.Row { return r.Add(one, nonce, until) })
		parts.Update(exact.All, func(r exact.Row) exact.Row { return r.Add(one, nonce, 0) })
		visits.Update(marks[i].Key, func(r exact.Row) exact.Row { return r.Visit(marks[i], 0) })
		out := one.Outputs(nonce, row)
		for n := range out {
			if !c.first && c.Narrow {
				out[n].Of = &marks[i]
			}
		}
		if err := c.to.Emit(ctx, out...); err != nil {
			return err
		}
		if c.first && c.fails(e, marks[i]) {
			failed = append(failed, e)
		}
	}
	if len(failed) > 0 {
		return runnel.FailedEvents(errBad, failed...)
	}
	return nil
}

// fails reports whether an event fails this time.
func (c *counter) fails(e *runnel.Event, m exact.Mark) bool {
	switch {
	case c.Order != 0:
		return hopeless(m) || m.N%50 == 9 && e.Attempt == 1
	case c.Policy == runnel.Ignore:
		return hopeless(m)
	case c.Policy == runnel.Quarantine:
		return m.N%500 == 7 && rand.IntN(2) == 0
	case c.Twice:
		return m.N%50 == 9 && e.Attempt == 1
	}
	return false
}

// TestMain runs a worker if the test binary was started as one.
func TestMain(m *testing.M) {
	if text := os.Getenv(setupVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, "ended:", err)
			os.Exit(1)
		}
		return
	}
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}

// silent discards the log of the test's own client, whose servers are down now and then.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func work(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(os.Stderr, ready) // it may be terminated
	var s setup
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&s); err != nil {
		return err
	}
	a := s.declare(s.URL)
	defer a.Close()
	a.count(0)
	a.count(1)
	return a.Run(ctx)
}

const ready = "ready"
