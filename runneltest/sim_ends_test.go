package runneltest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
)

// A visit is an event of the storms of rows that end, and what is told of several once there was a pause behind them.
type visit struct {
	Key   string
	Count int
	Ended int64 // ms
	Bad   bool  // the first attempt fails
}

const (
	endsParts = 3
	endsPause = 400 * time.Millisecond
)

// An endStorm is a storm over a processor that tells what was between two pauses of a key, when the second one is over.
type endStorm struct {
	*storm
	keys  keys.Keys
	fails bool // some events, which those of their key alone wait for
}

// TestSimEndsSeeds calls OnExpire once for each row, in the order of time, whatever becomes of the workers.
func TestSimEndsSeeds(t *testing.T) {
	eachSeed(t, max(*seeds, tier.Large(20)), func(storm *storm, n uint64) {
		s := &endStorm{storm: storm}
		s.keys = keys.Keys{App: "sim", Layout: []string{keys.Standalone, keys.Cluster}[n%2]}
		s.batches, s.fails = n%3 == 0, n%4 == 1
		runneltest.Sim(s.t, s.build, s.run)
	})
}

func (s *endStorm) declare(o *runnel.Options) (app *runnel.App, in, out *runnel.Stream[visit]) {
	o.KeyLayout = runnel.KeyLayout(s.keys.Layout)
	app = runnel.New("sim", o)
	opts := &runnel.StreamOptions{Partitions: endsParts, Codec: codec.JSON}
	key := func(v visit) string { return v.Key }
	return app, runnel.NewStream(app, "in", key, opts), runnel.NewStream(app, "out", key, opts)
}

func (s *endStorm) build(o *runnel.Options) *runnel.App {
	app, in, out := s.declare(o)
	open := runnel.NewTable[visit](in, "open", &runnel.TableOptions{TTL: endsPause, Memory: 2 << 10})
	open.OnExpire(func(ctx context.Context, key string, v visit) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		if rand.IntN(10) == 0 {
			time.Sleep(rand.N(50 * time.Millisecond))
		}
		if _, ok := open.Rows(ctx).Get(key); ok {
			s.t.Errorf("row %s is there while its end is told", key)
		}
		if rand.IntN(30) == 0 {
			v.Count = 1000 // of a failed attempt
			_ = out.Emit(ctx, v)
			return errStorm
		}
		v.Ended = open.Rows(ctx).Now().UnixMilli()
		return out.Emit(ctx, v)
	})
	count := func(ctx context.Context, events []*runnel.Event, visits []visit) error {
		if err := runneltest.Gate(ctx); err != nil {
			return err
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		for _, v := range visits {
			open.Rows(ctx).Update(v.Key, func(row visit) visit { return visit{Key: v.Key, Count: row.Count + 1} })
		}
		for i, v := range visits {
			if v.Bad && events[i].Attempt == 1 {
				return errStorm
			}
		}
		return nil
	}
	fn := runnel.Each(func(ctx context.Context, e *runnel.Event, v visit) error {
		return count(ctx, []*runnel.Event{e}, []visit{v})
	})
	if s.batches {
		fn = runnel.EachBatch(4, 20*time.Millisecond, count)
	}
	order := runnel.OrderPartition
	if s.fails {
		order = runnel.OrderKey
	}
	in.Process("follow", fn, &runnel.ProcessorOptions{
		Lease: stormExpiry, Grace: stormGrace, Tables: []runnel.State{open},
		Retry: &runnel.Retry{Max: 20, MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Order: order},
	})
	return app
}

func (s *endStorm) run(c *runneltest.Cluster) {
	s.c = c
	c.Latency(stormLatency)
	app, in, _ := s.declare(c.Options("producer"))
	defer app.Close()
	s.others.Go(func() {
		for end := time.Now().Add(tableStormLasts()); time.Now().Before(end); {
			time.Sleep(rand.N(120 * time.Millisecond))
			var some []visit
			for range 1 + rand.IntN(4) {
				some = append(some, visit{Key: fmt.Sprint("k", rand.IntN(stormKeys)), Bad: s.fails && rand.IntN(5) == 0})
			}
			if err := in.Send(c.Context(), some...); err != nil {
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
		time.Sleep(200 * time.Millisecond)
		return s.open() == 0
	})
	for _, w := range s.live {
		if err := w.Stop(); err != nil {
			s.t.Errorf("worker %s stopped with %v", w.Name(), err)
		}
	}
	for p := range endsParts {
		s.judge(p)
	}
}

// open returns how many events and rows and outputs wait.
func (s *endStorm) open() (n int64) {
	ctx, rdb := s.c.Context(), s.c.Redis()
	for p := range endsParts {
		last := rdb.XRevRangeN(ctx, s.keys.Partition("in", p), "+", "-", 1).Val()
		groups := rdb.XInfoGroups(ctx, s.keys.Partition("in", p)).Val()
		if len(last) == 1 && (len(groups) != 1 || groups[0].LastDeliveredID != last[0].ID) {
			n++
		}
		n += rdb.HLen(ctx, s.keys.Parked("in", "follow", p)).Val()
		for _, kind := range []string{"rows", "until"} {
			n += rdb.Exists(ctx, keys.MustKind(kind).Key(s.keys, "in", "open", "", p)).Val()
		}
		n += rdb.XLen(ctx, keys.MustKind("out").Key(s.keys, "in", "follow", "", p)).Val()
	}
	return n
}

// judge compares what was told of a partition with what its events say, in order.
func (s *endStorm) judge(p int) {
	ctx, rdb := s.c.Context(), s.c.Redis()
	var want, got []visit
	open := map[string]visit{}
	close := func(by int64) {
		var over []visit
		for _, v := range open {
			if v.Ended <= by {
				over = append(over, v)
				delete(open, v.Key)
			}
		}
		slices.SortFunc(over, func(a, b visit) int { return cmpEnds(a, b) })
		want = append(want, over...)
	}
	events := rdb.XRange(ctx, s.keys.Partition("in", p), "-", "+").Val()
	for _, e := range events {
		at := entryid.Millis(e.ID)
		close(at)
		v := visitOf(s.t, e.Values)
		open[v.Key] = visit{Key: v.Key, Count: open[v.Key].Count + 1, Ended: at + endsPause.Milliseconds()}
	}
	close(1 << 60)
	for _, e := range rdb.XRange(ctx, s.keys.Partition("out", p), "-", "+").Val() {
		got = append(got, visitOf(s.t, e.Values))
	}
	s.t.Logf("partition %d: %d events, %d ends", p, len(events), len(want))
	if s.batches || s.fails { // a batch has the time of its last event, what was parked that of its attempt
		want, got = counted(want), counted(got)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("partition %d: told\n%v, want\n%v", p, got, want)
	}
}

func cmpEnds(a, b visit) int {
	if a.Ended != b.Ended {
		return int(a.Ended - b.Ended)
	}
	if a.Key < b.Key {
		return -1
	}
	return 1
}

// counted adds up what was told of each key.
func counted(visits []visit) (sums []visit) {
	of := map[string]int{}
	for _, v := range visits {
		of[v.Key] += v.Count
	}
	for key, n := range of {
		sums = append(sums, visit{Key: key, Count: n})
	}
	slices.SortFunc(sums, cmpEnds)
	return sums
}

func visitOf(t testing.TB, fields map[string]any) (v visit) {
	data, _ := fields[store.PayloadField].(string)
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(fields, err)
	}
	return v
}
