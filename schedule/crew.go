package schedule

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/internal/schedulers"
)

// A crew is the runs of one worker. They are not bound to the ownership of their partition: where that moves, a run goes on here, and
// its end counts. What bounds them is the life of the runner, which beats prolong in each partition with runs of it.
type crew struct {
	s      *Scheduler
	runner string

	calls  context.Context // of the ends of runs
	cancel context.CancelFunc
	ends   groupcommit.Trips[*ending]
	idle   sync.WaitGroup // places that are reserved or taken
	expiry atomic.Int64   // how long the runner lives behind a beat, in ns

	mu     sync.Mutex
	free   int
	whole  int
	wants  []*owner // that found no place, in the order in which they came
	posts  map[int]*post
	closed bool
	handed map[string]time.Time
}

// A post is what the worker has in a partition.
type post struct {
	runs    map[*run]bool
	beaten  time.Time // when the last call that prolonged the life there began
	beating bool      // a beat is under way
	late    bool      // runs have ended since no beat came through

	// What counts as the runner's and has not begun here: a reply was lost, or is on its way.
	doubt  int                    // beats in which it is looked for
	strays map[ischedule.Run]bool // seen in the last beat
}

// A run is an attempt under way.
type run struct {
	ischedule.Run
	source    jobs.Source // its task
	partition int
	ctx       context.Context
	end       context.CancelCauseFunc
}

// fewestAsked is how many runs an owner asks for at least. Otherwise it asks for twice as many as it got last: places that it has asked for
// in vain others lack meanwhile.
const fewestAsked = 8

// backfillReserve is how many places the lowest priority does not get.
const backfillReserve = 1

func newCrew(s *Scheduler, places int) *crew {
	c := &crew{s: s, runner: rand.Text(), free: places, whole: places, posts: map[int]*post{}, handed: map[string]time.Time{}}
	c.calls, c.cancel = context.WithCancel(context.Background())
	c.expiry.Store(int64(30 * time.Second))
	c.ends = groupcommit.Trips[*ending]{Send: c.send, Bytes: func(e *ending) int { return len(e.Error) }, Limit: groupcommit.Load{Items: 16 * ischedule.PerCall, Bytes: 1 << 20}}
	return c
}

func (c *crew) life() time.Duration { return time.Duration(c.expiry.Load()) }

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
	c.idle.Add(most) // until release: a worker that stops waits for what is being taken, too
	return most, backfill
}

// begin begins the runs that an owner has taken by a call that began at a time, and gives the other places back. open reports whether
// the owner may start runs.
func (c *crew) begin(o *owner, t *ischedule.Take, began time.Time, open bool, err error) {
	c.mu.Lock()
	p, all := cmp.Or(c.posts[t.Partition], &post{runs: map[*run]bool{}}), make([]*run, len(t.Runs))
	c.posts[t.Partition] = p
	switch {
	case t.Most == 0:
	case err == nil:
		p.beaten, p.late = began, false
	default:
		p.doubt = beatsOfDoubt
	}
	for i, taken := range t.Runs {
		ctx, end := context.WithCancelCause(context.Background())
		if c.closed {
			end(ErrInterrupted)
		}
		source, _ := jobs.ParseSource(taken.Task)
		all[i] = &run{taken, source, t.Partition, ctx, end}
		p.runs[all[i]] = true
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
	for _, one := range all {
		go c.start(one)
	}
}

// release gives places back, and wakes the owner that has the best use for them: whose first run has the best priority, of several the
// one that waits for longest.
func (c *crew) release(places int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free += places
	for range places {
		c.idle.Done()
	}
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
	defer c.cancel()
	var register sync.WaitGroup
	register.Go(func() { c.register(ctx) })
	defer register.Wait()
	over := make(chan struct{})
	go func() {
		defer close(over)
		<-ctx.Done()
		c.close(cmp.Or(s.opts.Grace, s.inherited.Grace))
	}()
	for {
		select {
		case <-time.After(c.life() / looksPerLife):
			c.beat()
		case <-over:
			return nil
		}
	}
}

// close lets nothing more begin, waits for the runs for grace, then ends them, and returns when all have ended or a second later.
func (c *crew) close(grace time.Duration) {
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
	c.mu.Lock()
	for _, p := range c.posts {
		for r := range p.runs {
			r.end(ErrInterrupted)
		}
	}
	c.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(stuckAfter):
	}
}

// stuckAfter is how long behind the end of its context a function may take to return.
const stuckAfter = 900 * time.Millisecond

// start runs an attempt, and stores its end.
func (c *crew) start(r *run) {
	defer r.end(nil)
	began := time.Now()
	end, returned := c.attempt(r.ctx, r)
	took, e := time.Since(began), &ending{End: *end, partition: r.partition}
	c.finish(e)
	result := e.Result
	if !e.Accepted { // too late: the run had been taken over, cleared or cancelled
		result = "refused"
	}
	c.s.count.Add(schedulers.Ends, r.source.Job, result, c.s.name, r.source.Name)
	c.s.count.Observe(schedulers.Spent, took, r.source.Job, c.s.name, r.source.Name)
	c.mu.Lock()
	delete(c.posts[r.partition].runs, r)
	c.mu.Unlock()
	<-returned // a function that is stuck keeps its place
	c.release(1)
}

func (r *run) at() time.Time { return time.UnixMilli(r.Time).UTC() }

func (r *run) public(log *runLog) *Run {
	return &Run{Job: r.source.Job, Task: r.source.Name, Time: r.at(), Generation: int(r.Generation), Attempt: int(r.Attempt), log: log}
}
