package stage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/stage"
)

// A tally is what a producer knows: changes that were confirmed, and those whose outcome it does not know.
type tally struct{ sure, doubt int }

// A far is a set on servers that fail, with two workers.
type far struct {
	t    *testing.T
	set  *stage.Set[counted]
	made map[string]tally
}

// onFar runs fn with workers and a producer on servers that fn hurts, and checks that nothing confirmed is
// lost, and that the fixpoint is reached.
func onFar(t *testing.T, url string, layout runnel.KeyLayout, keys func(ctx context.Context) []string, hurt func(f *far)) {
	t.Helper()
	opts := func(name string) *runnel.Options {
		return &runnel.Options{RedisURL: url, KeyLayout: layout, WorkerName: name, LogLevel: "error", Durability: runnel.Durability{MinReplicas: 1, Timeout: 3 * time.Second}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, name := range []string{"w1", "w2"} {
		app := runnel.New("shop", opts(name))
		counting(app)
		running.Go(func() {
			defer app.Close()
			if err := app.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		within(t, func() bool { return app.Ready() == nil })
	}
	app := runnel.New("shop", opts("producer"))
	defer app.Close()
	f := &far{t: t, set: counting(app), made: map[string]tally{}}
	over := make(chan struct{})
	producing := make(chan struct{})
	go func() {
		defer close(producing)
		f.produce(over)
	}()
	hurt(f)
	close(over)
	<-producing
	left := "?"
	for end := time.Now().Add(time.Minute); left != "" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = f.left(keys)
	}
	if left != "" {
		t.Error(left)
	}
	cancel()
	running.Wait()
	t.Logf("%v", f.made)
}

func (f *far) produce(over <-chan struct{}) {
	for !closed(over) {
		id := fmt.Sprint("e", rand.IntN(20))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := f.set.Update(ctx, id, func(e *counted) error {
			e.N++
			return nil
		})
		if errors.Is(err, stage.ErrNotFound) {
			_, err = f.set.Save(ctx, stage.Entity[counted]{Value: counted{ID: id, N: 1}})
		}
		cancel()
		made := f.made[id]
		if err == nil {
			made.sure++
		} else {
			made.doubt++
		}
		f.made[id] = made
		time.Sleep(rand.N(4 * time.Millisecond))
	}
}

// left says what is not as it should be, "" for nothing.
func (f *far) left(keys func(ctx context.Context) []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for id, made := range f.made {
		e, err := f.set.Get(ctx, id)
		if made.sure == 0 && err != nil {
			continue
		}
		if n := e.Value.N; err != nil || n < made.sure || n > made.sure+made.doubt || e.Value.Geo != n || e.Value.Photo != n {
			return fmt.Sprintf("%s is %+v, %v; %+v were made", id, e, err, made)
		}
	}
	for _, key := range keys(ctx) {
		for _, kind := range []string{"__touch:", "__visit:", "__visitrun:", "__visitfail:", "__visitdead:"} {
			if len(key) > len(kind) && key[:len(kind)] == kind {
				return "there is " + key
			}
		}
	}
	return ""
}

// While slots move under load and a master is killed, nothing that was confirmed by replicas is lost.
func TestSetsInAClusterWhoseSlotsMove(t *testing.T) {
	tier.Slow(t)
	k := redistest.StartCluster(t, 3, 2)
	keys := func(ctx context.Context) (all []string) {
		var mu sync.Mutex
		_ = k.Client(t).ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c.Keys(ctx, "*").Val()...)
			return nil
		})
		return all
	}
	onFar(t, k.URL(), runnel.LayoutCluster, keys, func(f *far) {
		for n := range 7 {
			slot := k.Slot(fmt.Sprintf("__ent:{shop.%d}.things", n))
			to := k.Masters()[rand.IntN(3)]
			if to == k.Owner(slot) {
				continue
			}
			move := k.Begin(slot, to)
			for move.Some(1) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			move.End()
		}
		slot := k.Slot("__ent:{shop.3}.things")
		master := k.Owner(slot)
		master.Kill()
		k.WaitFailover(slot, master)
		time.Sleep(2 * time.Second)
	})
}

// A master that is killed under Sentinel loses nothing that was confirmed.
func TestSetsUnderSentinel(t *testing.T) {
	tier.Slow(t)
	w := redistest.StartWatched(t, 2)
	keys := func(ctx context.Context) []string {
		rdb := redis.NewClient(&redis.Options{Addr: w.Master().Addr(), DisableIdentity: true})
		defer rdb.Close()
		return rdb.Keys(ctx, "*").Val()
	}
	onFar(t, w.URL(), runnel.LayoutStandalone, keys, func(f *far) {
		for range 2 {
			time.Sleep(2 * time.Second)
			master := w.Master()
			master.Kill()
			w.WaitFailover(master)
			time.Sleep(3 * time.Second)
			w.Restart(master)
		}
	})
}
