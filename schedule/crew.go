package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// A crew is the runs of one worker. They are not bound to the ownership of their partition: where that moves, a run goes on here, and
// its end counts. What bounds them is the life of the runner, which beats prolong in each partition with runs of it.
type crew struct {
	s      *Scheduler
	runner string

	mu     sync.Mutex
	log    *slog.Logger
	expiry time.Duration
	free   int
	whole  int
	wants  []*owner // that found no place, in the order in which they came
	runs   map[*run]bool
	beaten map[int]time.Time // partition → when the last call that prolonged the life there began
	closed bool
	idle   sync.WaitGroup // runs
	ends   groupcommit.Trips[*ending]
	calls  context.Context // of the ends of runs
	handed map[string]time.Time

	count counters

	// What counts as the runner's and has not begun here: a reply was lost, or is on its way.
	doubt  map[int]int                    // partition → beats in which it is looked for
	strays map[int]map[ischedule.Run]bool // seen in the last beat there

	beating map[int]bool // partitions with a beat under way
	late    map[int]bool // partitions whose runs have ended since no beat came through
}

// A run is an attempt under way.
type run struct {
	ischedule.Run
	partition int
	end       context.CancelCauseFunc
}

// fewestAsked is how many runs an owner asks for at least. Otherwise it asks for twice as many as it got last: places that it has asked for
// in vain others lack meanwhile.
const fewestAsked = 8

// backfillReserve is how many places the lowest priority does not get.
const backfillReserve = 1

func newCrew(s *Scheduler, places int) *crew {
	c := &crew{
		s: s, runner: rand.Text(), free: places, whole: places, runs: map[*run]bool{}, beaten: map[int]time.Time{}, handed: map[string]time.Time{},
		doubt: map[int]int{}, strays: map[int]map[ischedule.Run]bool{}, beating: map[int]bool{}, late: map[int]bool{},
		log: slog.New(slog.DiscardHandler), calls: context.Background(), expiry: 30 * time.Second,
	}
	c.ends = groupcommit.Trips[*ending]{Send: c.send, Bytes: func(e *ending) int { return len(e.Error) }, Limit: groupcommit.Load{Items: 16 * ischedule.PerCall, Bytes: 1 << 20}}
	return c
}

// lives sets how long the runner lives behind a beat.
func (c *crew) lives(expiry time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expiry = expiry
}

func (c *crew) life() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expiry
}

// reserve takes free places for an owner, which gives back by begin what it has no runs for. Without any it is woken when there are.
func (c *crew) reserve(o *owner) (most, backfill int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, 0
	}
	most = min(c.free, o.asks, ischedule.PerCall)
	backfill = c.forBackfill(most)
	c.free -= most
	if most > 0 {
		c.idle.Add(1) // until begin: a worker that stops waits for what is being taken
	}
	return most, backfill
}

// begin begins the runs that an owner has taken by a call that began at a time, and gives the other places back. open reports whether
// the owner may start runs.
func (c *crew) begin(o *owner, t *ischedule.Take, began time.Time, open bool, err error) {
	c.mu.Lock()
	if t.Most > 0 && err == nil {
		c.beaten[t.Partition] = began
		delete(c.late, t.Partition)
	}
	if t.Most > 0 && err != nil {
		c.doubt[t.Partition] = beatsOfDoubt
	}
	var all []*run
	for _, taken := range t.Runs {
		one := &run{Run: taken, partition: t.Partition}
		c.runs[one] = true
		all = append(all, one)
		c.idle.Add(1)
	}
	o.asks = max(2*len(t.Runs), fewestAsked)
	o.first = -1
	if err == nil {
		o.first = t.First
	}
	c.wants = slices.DeleteFunc(c.wants, func(other *owner) bool { return other == o })
	if o.first >= 0 && len(t.Runs) == 0 && open && !c.closed {
		c.wants = append(c.wants, o)
	}
	c.mu.Unlock()
	c.release(t.Most - len(t.Runs))
	if t.Most > 0 {
		c.idle.Done()
	}
	for _, one := range all {
		c.start(one)
	}
}

// release gives places back, and wakes the owner that has the best use for them: whose first run has the best priority, of several the
// one that waits for longest.
func (c *crew) release(places int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free += places
	var best *owner
	for _, o := range c.wants {
		usable := c.free
		if o.first >= ischedule.Backfill {
			usable = c.forBackfill(c.free)
		}
		if usable > 0 && (best == nil || o.first < best.first) {
			best = o
		}
	}
	if best != nil {
		best.own.Wake()
	}
}

// forBackfill is how many of the free places the lowest priority may have.
func (c *crew) forBackfill(places int) int {
	if c.whole > backfillReserve {
		return max(0, min(places, c.free-backfillReserve))
	}
	return places
}

// forget forgets that an owner waits for a place, where it cannot use one: another gets it.
func (c *crew) forget(o *owner) {
	c.mu.Lock()
	c.wants = slices.DeleteFunc(c.wants, func(other *owner) bool { return other == o })
	c.mu.Unlock()
	c.release(0)
}

// work is the crew's part of the worker: it beats until the worker stops, and then waits for the runs.
func (c *crew) work(ctx context.Context) error {
	s := c.s
	if err := s.begin(); err != nil {
		return err
	}
	log := s.log()
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.mu.Lock()
	c.log, c.calls = log, calls
	c.mu.Unlock()
	register := make(chan struct{})
	go func(ctx context.Context) {
		defer close(register)
		c.register(ctx)
	}(ctx)
	grace, over := time.Duration(-1), make(chan struct{})
	for over != nil {
		timer := time.NewTimer(c.life() / looksPerLife)
		select {
		case <-timer.C:
			c.beat(calls)
		case <-ctx.Done():
			if ctx = context.WithoutCancel(ctx); grace < 0 {
				grace = cmp.Or(s.opts.Grace, s.inherited.Grace)
				go c.close(grace, over)
			}
		case <-over:
			over = nil
		}
		timer.Stop()
	}
	<-register
	return nil
}

// close lets nothing more begin, waits for the runs for grace, then ends them, and closes over when all have ended or a second later.
func (c *crew) close(grace time.Duration, over chan struct{}) {
	defer close(over)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.idle.Wait()
	}()
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	c.each(func(r *run) { r.end(ErrInterrupted) })
	select {
	case <-ended:
	case <-time.After(stuckAfter):
	}
}

// stuckAfter is how long behind the end of its context a function may take to return.
const stuckAfter = 900 * time.Millisecond

func (c *crew) each(f func(r *run)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.runs {
		if r.end != nil {
			f(r)
		}
	}
}

func (c *crew) drop(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r)
}

// start begins a run.
func (c *crew) start(r *run) {
	ctx, end := context.WithCancelCause(context.Background())
	c.mu.Lock()
	r.end = end
	closed := c.closed
	c.mu.Unlock()
	if closed {
		end(ErrInterrupted)
	}
	go func() {
		defer c.idle.Done()
		defer end(nil)
		began := time.Now()
		end, returned := c.attempt(ctx, r)
		took, e := time.Since(began), &ending{End: *end, partition: r.partition}
		c.finish(e)
		c.count.add(&e.End, took)
		c.drop(r)
		<-returned // a function that is stuck keeps its place
		c.release(1)
	}()
}

func (r *run) source() jobs.Source {
	s, _ := jobs.ParseSource(r.Task)
	return s
}

func (r *run) job() string   { return r.source().Job }
func (r *run) task() string  { return r.source().Name }
func (r *run) at() time.Time { return time.UnixMilli(r.Time).UTC() }

func (r *run) public(log *runLog) *Run {
	return &Run{Job: r.job(), Task: r.task(), Time: r.at(), Generation: int(r.Generation), Attempt: int(r.Attempt), log: log}
}
