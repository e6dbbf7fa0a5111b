package stage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/tier"
	"github.com/runnel-go/runnel/runneltest"
	"github.com/runnel-go/runnel/stage"
)

// A counted entity is at its fixpoint when its numbers are the same.
type counted struct {
	ID            string
	N, Geo, Photo int
}

// A play is a simulated cluster with faults by chance.
type play struct {
	t    *testing.T
	c    *runneltest.Cluster
	rand *rand.Rand

	mu      sync.Mutex
	next    runnel.Reads      // of the worker that is being started
	running map[string]string // entity to who runs it, with its epoch
	epochs  map[string]int64
	broken  []string
	calls   int
}

func simSeeds() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SIM_SEEDS"))
	if err != nil {
		return tier.Large(10)
	}
	return n
}

// Whatever happens to workers and connections, all changes of producers are there in the end, the stages
// have seen the last one, and nothing waits or runs.
func TestSimStagesSeeds(t *testing.T) {
	for seed := range uint64(simSeeds()) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			p := &play{t: t, rand: rand.New(rand.NewPCG(seed+1, 0)), running: map[string]string{}, epochs: map[string]int64{}}
			runneltest.Sim(t, p.build, p.run)
		})
	}
}

func (p *play) build(o *runnel.Options) *runnel.App {
	o.Processor.Reads = p.next
	app := runnel.New("shop", o)
	p.declare(app)
	return app
}

// start starts a worker that reads by group or by position.
func (p *play) start(name string) *runneltest.Worker {
	p.next = runnel.ByGroup
	if p.chance(2) {
		p.next = runnel.ByPosition
	}
	return p.c.Start(fmt.Sprint(name, "-", p.next))
}

func (p *play) declare(app *runnel.App) *stage.Set[counted] {
	set := stage.New(app, "things", func(e counted) string { return e.ID }, &stage.Options{Partitions: 5, Lease: 2 * time.Second, Grace: time.Second, Retry: &runnel.Retry{Max: 50, MinBackoff: 50 * time.Millisecond, MaxBackoff: time.Second}})
	set.Stage("geo", func(e counted) bool { return e.Geo != e.N }, func(ctx context.Context, e *counted) (stage.Result, error) {
		if err := p.work(ctx, e.ID); err != nil {
			return stage.Untouched, err
		}
		e.Geo = e.N
		return stage.Updated, nil
	}, &stage.StageOptions{Concurrency: 3})
	set.Stage("photo", func(e counted) bool { return e.Photo != e.Geo }, func(ctx context.Context, e *counted) (stage.Result, error) {
		if err := p.work(ctx, e.ID); err != nil {
			return stage.Untouched, err
		}
		e.Photo = e.Geo
		return stage.Updated, nil
	}, nil)
	return set
}

// chance is one of n.
func (p *play) chance(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.IntN(n) == 0
}

func (p *play) upTo(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.rand.Int64N(int64(d)))
}

// work takes a while. Of one entity, and of one ownership, one works at a time.
func (p *play) work(ctx context.Context, id string) error {
	if err := runneltest.Gate(ctx); err != nil {
		return err
	}
	v, _ := stage.VisitOf(ctx)
	who := fmt.Sprint(v.Epoch, " ", v.Stage)
	p.mu.Lock()
	p.calls++
	if other := p.running[id]; strings.HasPrefix(other, fmt.Sprint(v.Epoch, " ")) {
		p.broken = append(p.broken, fmt.Sprintf("%s of %s runs beside %s", who, id, other))
	}
	p.running[id] = who
	p.mu.Unlock()
	time.Sleep(p.upTo(80 * time.Millisecond))
	p.mu.Lock()
	if p.running[id] == who {
		delete(p.running, id)
	}
	p.mu.Unlock()
	if p.chance(20) {
		return fmt.Errorf("by chance")
	}
	return nil
}

func (p *play) run(c *runneltest.Cluster) {
	p.c = c
	app := runnel.New("shop", c.Options("outside"))
	set := p.declare(app)
	defer app.Close()
	if p.chance(2) {
		c.Latency(p.upTo(20*time.Millisecond) + 1)
	}
	var workers []*runneltest.Worker
	for i := range 3 {
		workers = append(workers, p.start(fmt.Sprint("w", i)))
	}
	changes := map[string]int{}
	var producing sync.WaitGroup
	producing.Go(func() { p.produce(set, changes) })
	p.hurt(workers)
	producing.Wait()
	left := ""
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if left = p.left(set, changes); left == "" {
			break
		}
		if time.Now().After(end) {
			p.breaks("not at the fixpoint: %s\n%s", left, p.dump())
			break
		}
	}
	if len(p.broken) > 0 {
		p.t.Error(strings.Join(p.broken, "\n"))
	}
}

// produce changes entities.
func (p *play) produce(set *stage.Set[counted], changes map[string]int) {
	ctx := p.c.Context()
	for range 60 {
		time.Sleep(p.upTo(400 * time.Millisecond))
		id, err := fmt.Sprint("e", int(p.upTo(9))), error(nil)
		if changes[id] == 0 {
			_, err = set.Save(ctx, stage.Entity[counted]{Value: counted{ID: id, N: 1}})
		} else {
			_, err = set.Update(ctx, id, func(e *counted) error {
				e.N++
				return nil
			})
		}
		if err != nil {
			p.breaks("%s: %v", id, err)
		}
		changes[id]++
	}
}

// hurt lets faults happen.
func (p *play) hurt(workers []*runneltest.Worker) {
	for n := 3; n < 15; n++ {
		time.Sleep(p.upTo(2 * time.Second))
		i := int(p.upTo(3))
		w := workers[i]
		switch p.upTo(6) {
		case 0:
			w.Kill()
			workers[i] = p.start(fmt.Sprint("w", n))
		case 1:
			w.Freeze(p.upTo(4 * time.Second)) // a stopped one returns late
		case 2:
			w.Isolate(p.upTo(6 * time.Second))
		case 3:
			w.Cut()
		case 4:
			p.stop(w)
			workers[i] = p.start(fmt.Sprint("w", n))
		}
	}
	for i, w := range workers { // one of them lives on in any case
		select {
		case <-w.Done():
			p.stop(w)
			p.start(fmt.Sprint("last", i))
		default:
		}
	}
}

// silent is the error of a worker that reached no server in its first 5 s, or none to leave its group.
var silent = regexp.MustCompile(`metadata|membership|redis at`)

// stop stops a worker, which may have ended by itself.
func (p *play) stop(w *runneltest.Worker) {
	err := w.Stop()
	if err != nil && !silent.MatchString(err.Error()) {
		p.breaks("worker %s: %v", w.Name(), err)
	}
}

func (p *play) breaks(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = append(p.broken, fmt.Sprintf(format, args...))
}

// dump tells what is stored of visits.
func (p *play) dump() (out string) {
	ctx, rdb := p.c.Context(), p.c.Redis()
	for _, key := range rdb.Keys(ctx, "*").Val() {
		switch rdb.Type(ctx, key).Val() {
		case "zset":
			out += fmt.Sprintln(key, rdb.ZRangeWithScores(ctx, key, 0, -1).Val())
		case "hash":
			out += fmt.Sprintln(key, rdb.HGetAll(ctx, key).Val())
		}
	}
	return fmt.Sprint(rdb.Time(ctx).Val().UnixMilli(), "\n", out)
}

// left says what is not as it should be in the end, "" for nothing.
func (p *play) left(set *stage.Set[counted], changes map[string]int) string {
	return leftOf(p.c.Context(), set, p.c.Redis(), changes)
}

func leftOf(ctx context.Context, set *stage.Set[counted], rdb *redis.Client, changes map[string]int) string {
	for id, n := range changes {
		e, err := set.Get(ctx, id)
		if err != nil || e.Value.N != n || e.Value.Geo != n || e.Value.Photo != n {
			return fmt.Sprintf("%s: %+v, %v, want %d", id, e, err, n)
		}
	}
	for _, key := range rdb.Keys(ctx, "*").Val() {
		for _, kind := range []string{"__touch:", "__visit:", "__visitrun:", "__visitfail:", "__visitdead:"} {
			if strings.HasPrefix(key, kind) {
				return "there is " + key
			}
		}
	}
	return ""
}
