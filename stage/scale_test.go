package stage_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/stage"
)

// A crowd is the work of workers that come and go: how often entities of a partition have been changed.
type crowd struct {
	partitions [16]atomic.Int64
	sets       []*stage.Set[item]
	stops      []func()
	running    sync.WaitGroup
}

// declare declares a set with two stages that change different fields.
func (c *crowd) declare(app *runnel.App) *stage.Set[item] {
	set := stage.New(app, "items", func(e item) string { return e.ID }, &stage.Options{Partitions: len(c.partitions)})
	step := func(name string, wants func(item) bool, do func(*item)) {
		set.Stage(name, wants, func(ctx context.Context, e *item) (stage.Result, error) {
			do(e)
			v, _ := stage.VisitOf(ctx)
			c.partitions[v.Partition].Add(1)
			return stage.Updated, nil
		}, &stage.StageOptions{Concurrency: 64})
	}
	step("a", func(e item) bool { return e.A == 0 }, func(e *item) { e.A = 1 })
	step("b", func(e item) bool { return e.B == 0 }, func(e *item) { e.B = 1 })
	return set
}

func (c *crowd) start(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		ctx, stop := context.WithCancel(context.Background())
		app := runnel.New("shop", &runnel.Options{RedisURL: url, WorkerName: fmt.Sprint("w", len(c.stops)), LogLevel: "error"})
		c.sets, c.stops = append(c.sets, c.declare(app)), append(c.stops, stop)
		c.running.Go(func() {
			defer app.Close()
			if err := app.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// done returns how many changes were made, and the most that one partition stood still although it has
// work left, by what seen has.
func (c *crowd) done(each []int64, seen []int64, since []time.Time) (all int64, stood time.Duration) {
	for n := range c.partitions {
		now := c.partitions[n].Load()
		if all += now; now != seen[n] || now >= each[n] {
			seen[n], since[n] = now, time.Now()
		}
		stood = max(stood, time.Since(since[n]))
	}
	return all, stood
}

// fill stores entities, and returns how many changes each partition needs.
func (c *crowd) fill(t *testing.T, set *stage.Set[item], many int) []int64 {
	t.Helper()
	each := make([]int64, len(c.partitions))
	for from := 0; from < many; from += 1000 {
		some := make([]item, 1000)
		for i := range some {
			some[i].ID = fmt.Sprint("e", from+i)
			each[runnel.XXHash.Func(some[i].ID, len(each))] += 2
		}
		if err := set.Put(t.Context(), some...); err != nil {
			t.Fatal(err)
		}
	}
	return each
}

// One worker, then four, then two: every entity is visited by both stages, without a conflict, and no
// partition stands still for as long as a lease.
func TestWorkersComeAndGoOverManyEntities(t *testing.T) {
	tier.Slow(t)
	tier.Sequential(t)
	const many, lease = 100_000, 10 * time.Second // the default
	redis7 := redistest.Start(t)
	url, c := "redis://"+redis7.Addr(), &crowd{}
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	defer app.Close()
	set := c.declare(app)
	each := c.fill(t, set, many)
	c.start(t, url, 1)
	within(t, func() bool {
		all, _ := c.done(each, make([]int64, len(each)), make([]time.Time, len(each)))
		return all > 0
	})
	seen, since := make([]int64, len(each)), make([]time.Time, len(each))
	for n := range since {
		since[n] = time.Now()
	}
	longest := time.Duration(0)
	for all, stood := int64(0), time.Duration(0); all < 2*many && longest < 2*lease; time.Sleep(5 * time.Millisecond) {
		all, stood = c.done(each, seen, since)
		longest = max(longest, stood)
		switch {
		case len(c.stops) == 1 && all > many/2:
			c.start(t, url, 3)
		case len(c.stops) == 4 && all > many:
			c.stops[0]()
			c.stops[1]()
			c.stops = append(c.stops, func() {})
		}
	}
	for _, stop := range c.stops {
		stop()
	}
	c.running.Wait()
	var conflicts int64
	for _, s := range c.sets {
		conflicts += stage.Conflicts(s)
	}
	rdb := redis.NewClient(&redis.Options{Addr: redis7.Addr(), DisableIdentity: true})
	defer rdb.Close()
	left := rdb.Keys(t.Context(), "__visit*").Val()
	if longest >= lease || conflicts != 0 || len(left) > 0 || len(c.sets) != 4 || len(c.stops) != 5 {
		t.Errorf("a partition stood still for %v, there were %d conflicts, there is %v", longest, conflicts, left)
	}
	for _, id := range []string{"e0", "e4711", "e99999"} {
		if e, err := set.Get(t.Context(), id); err != nil || e.Value.A != 1 || e.Value.B != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	}
	t.Logf("the longest that a partition stood still: %v", longest)
}
