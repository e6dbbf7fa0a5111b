package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/test/exact"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// A tableStorm is a storm over two Atomic processors in a chain, whose rows and outputs are judged. By some seeds events
// come in batches, fail, and are given up.
type tableStorm struct {
	*storm
	order runnel.RetryOrder // of the first processor; 0: its events do not fail
	parts [3]int            // partitions of the streams
	keys  keys.Keys
}

var (
	tableStreams    = []string{"in", "mid", "out"}
	tableProcessors = []string{"fold", "refold"}
)

// tableStormLasts is how long workers are hurt. The embedded server looks through a stream at each read, so a storm has few events.
func tableStormLasts() time.Duration {
	if tier.Full() && !tier.Race {
		return 10 * time.Second
	}
	return 4 * time.Second
}

// TestSimTablesSeeds counts each event once, in rows and in what is emitted, whatever becomes of the workers. By some seeds
// outputs go by way of the outbox, as in a cluster.
func TestSimTablesSeeds(t *testing.T) {
	eachSeed(t, max(*seeds, tier.Large(20)), func(storm *storm, n uint64) {
		s := &tableStorm{storm: storm, order: runnel.RetryOrder(n / 2 % 4), parts: [3]int{4, 3, 2}}
		s.keys = keys.Keys{App: "sim", Layout: []string{keys.Standalone, keys.Cluster}[n/3%2]}
		s.batches = n%2 == 0
		runneltest.Sim(s.t, s.build, s.run)
	})
}

func (s *tableStorm) declare(o *runnel.Options) (*runnel.App, []*runnel.Stream[exact.Mark]) {
	o.KeyLayout = runnel.KeyLayout(s.keys.Layout)
	app := runnel.New("sim", o)
	var list []*runnel.Stream[exact.Mark]
	for i, name := range tableStreams {
		list = append(list, runnel.NewStream(app, name, func(m exact.Mark) string { return m.Key },
			&runnel.StreamOptions{Partitions: s.parts[i], Codec: codec.JSON}))
	}
	return app, list
}

func (s *tableStorm) build(o *runnel.Options) *runnel.App {
	app, list := s.declare(o)
	for i, name := range tableProcessors {
		keyed := runnel.NewTable[exact.Row](list[i], "keys", &runnel.TableOptions{Codec: codec.JSON, TTL: s.ttl(i)})
		whole := runnel.NewTable[exact.Row](list[i], "parts", &runnel.TableOptions{Codec: codec.JSON, Local: true})
		count := func(ctx context.Context, events []*runnel.Event, marks []exact.Mark) error {
			if err := s.pass(ctx); err != nil {
				return err
			}
			for n, e := range events {
				one, nonce := exact.Entry{Partition: e.Partition, ID: e.ID, Mark: marks[n]}, rand.Uint64()
				until := uint64(0)
				if ttl := s.ttl(i); ttl > 0 {
					until = uint64(keyed.Rows(ctx).Now().Add(ttl).UnixMilli())
				}
				row := keyed.Rows(ctx).Update(marks[n].Key, func(r exact.Row) exact.Row { return r.Add(one, nonce, until) })
				whole.Rows(ctx).Update(exact.All, func(r exact.Row) exact.Row { return r.Add(one, nonce, 0) })
				if err := list[i+1].Emit(ctx, one.Outputs(nonce, row)...); err != nil {
					return err
				}
				if k := marks[n].N % 50; i == 0 && s.order != 0 && (k == 7 || k == 9 && e.Attempt == 1) {
					return errStorm
				}
			}
			return nil
		}
		fn := runnel.Each(func(ctx context.Context, e *runnel.Event, m exact.Mark) error {
			return count(ctx, []*runnel.Event{e}, []exact.Mark{m})
		})
		if s.batches {
			fn = runnel.EachBatch(5, 30*time.Millisecond, count)
		}
		opts := &runnel.ProcessorOptions{Lease: stormExpiry, Grace: stormGrace, Tables: []runnel.State{keyed, whole}}
		if i == 0 && s.order != 0 {
			opts.Retry = &runnel.Retry{Max: stormAttempts, Order: s.order, MinBackoff: 50 * time.Millisecond, MaxBackoff: time.Second}
		}
		list[i].Process(name, fn, opts)
	}
	return app
}

// ttl is after which time rows end of a processor: where each event is processed at its own time, which a batch has one of, and
// what was parked comes to later.
func (s *tableStorm) ttl(i int) time.Duration {
	if s.batches || i == 0 && s.order != 0 {
		return 0
	}
	return 500 * time.Millisecond
}

// pass takes its time. A worker that was killed does nothing behind it.
func (s *tableStorm) pass(ctx context.Context) error {
	if err := runneltest.Gate(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(rand.N(20 * time.Millisecond)):
	case <-after(ctx, rand.IntN(4) == 0):
	}
	if err := runneltest.WorkerOf(ctx).Gate(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (s *tableStorm) run(c *runneltest.Cluster) {
	s.c = c
	c.Latency(stormLatency)
	app, list := s.declare(c.Options("producer"))
	defer app.Close()
	s.others.Go(func() {
		for n, end := int64(0), time.Now().Add(tableStormLasts()); time.Now().Before(end); {
			time.Sleep(rand.N(80 * time.Millisecond))
			var out []exact.Mark
			for range 1 + rand.IntN(5) {
				n++
				out = append(out, exact.Mark{Key: fmt.Sprint("k", rand.IntN(stormKeys)), N: n})
			}
			if err := list[0].Send(c.Context(), out...); err != nil {
				s.t.Errorf("send: %v", err)
			}
		}
	})
	s.start()
	for end := time.Now().Add(tableStormLasts()); time.Now().Before(end); {
		c.Sleep(100*time.Millisecond + rand.N(time.Second))
		s.fault()
	}
	if len(s.live) == 0 {
		s.start()
	}
	s.others.Wait()
	c.Wait(func() bool {
		time.Sleep(200 * time.Millisecond) // each look takes many commands
		return s.left() == ""
	})
	for _, w := range s.live {
		if err := w.Stop(); err != nil {
			s.t.Errorf("worker %s stopped with %v", w.Name(), err)
		}
	}
	s.judge()
}

// left describes what is not processed, "" for nothing.
func (s *tableStorm) left() string {
	ctx, rdb := s.c.Context(), s.c.Redis()
	for i, name := range tableProcessors {
		for p := range s.parts[i] {
			key := s.keys.Partition(tableStreams[i], p)
			last, err := rdb.XRevRangeN(ctx, key, "+", "-", 1).Result()
			if err != nil || len(last) == 0 {
				if err != nil {
					return err.Error()
				}
				continue
			}
			groups, err := rdb.XInfoGroups(ctx, key).Result()
			if err != nil || len(groups) != 1 || groups[0].LastDeliveredID != last[0].ID {
				return fmt.Sprint(key, groups, err)
			}
			if n, err := rdb.HLen(ctx, s.keys.Parked(tableStreams[i], name, p)).Result(); n > 0 || err != nil {
				return fmt.Sprint(key, n, err)
			}
			if n, err := rdb.XLen(ctx, keys.MustKind("out").Key(s.keys, tableStreams[i], name, "", p)).Result(); n > 0 || err != nil {
				return fmt.Sprint(key, n, err)
			}
		}
	}
	return ""
}

func (s *tableStorm) judge() {
	ctx, rdb := s.c.Context(), s.c.Redis()
	read := func(i int) [][]exact.Entry {
		entries, err := exact.Entries(ctx, rdb, s.keysOf(i, func(p int) string { return s.keys.Partition(tableStreams[i], p) }))
		if err != nil {
			s.t.Fatal(err)
		}
		return entries
	}
	for i, name := range tableProcessors {
		stage := exact.Stage{Name: name, Events: read(i), Outputs: read(i + 1), Skipped: map[string]bool{}, TTL: s.ttl(i).Milliseconds()}
		if i == 0 {
			stage.Order = map[runnel.RetryOrder]exact.Order{runnel.OrderKey: exact.InKey, runnel.OrderNone: exact.InNone}[s.order]
		}
		for p := range s.parts[i] {
			dead, err := rdb.XRange(ctx, s.keys.Dead(tableStreams[i], name, p), "-", "+").Result()
			if err != nil {
				s.t.Fatal(err)
			}
			for _, d := range dead {
				stage.Skipped[exact.EventID(p, fmt.Sprint(d.Values["__dead.id"]))] = true
			}
		}
		var err1, err2 error
		stage.Keys, err1 = exact.Rows(ctx, rdb, s.rowsOf(i, "keys"))
		stage.Parts, err2 = exact.Rows(ctx, rdb, s.rowsOf(i, "parts"))
		if err := errors.Join(err1, err2); err != nil {
			s.t.Fatal(err)
		}
		v := stage.Judge()
		if s.t.Logf("%s: %v", name, v); len(v.Faults) > 0 || v.Events == 0 {
			s.t.Error("not exact")
		}
	}
}

func (s *tableStorm) keysOf(i int, key func(p int) string) (list []string) {
	for p := range s.parts[i] {
		list = append(list, key(p))
	}
	return list
}

func (s *tableStorm) rowsOf(i int, table string) []string {
	return s.keysOf(i, func(p int) string { return keys.MustKind("rows").Key(s.keys, tableStreams[i], table, "", p) })
}
