package schedule

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/store"
)

// MaxCrashes is how many workers a run may lose before it has crashed for good.
const MaxCrashes = 3

// Priorities, as cells have them. Facts hand one on to what they fire; with Own that has the priority of its task.
const (
	Own                         = -1
	High, Normal, Low, Backfill = 0, 1, 2, 3
)

// A Run is an attempt that has begun: a task at a logical time, in ms since 1970.
type Run struct {
	Task       string
	Time       int64
	Generation int64
	Attempt    int64
	Failed     int64 // earlier attempts of the generation that failed
	Priority   int64
	Rev        int64 // of its definition
}

// A Take takes runs of a partition for a runner. Repeated, it takes others: those of a lost reply count as the runner's until
// Beat does not name them.
type Take struct {
	Partition    int
	Fence        string // of the ownership: its lock value
	Most         int    // at most, 0: only tell
	MostBackfill int    // of the lowest priority
	Runner       string
	Life         time.Duration // of the runner, from now
	Sleep        bool          // wakes are wanted if there is nothing to do
	Unknown      bool          // recover runs whose runner nothing is known of, too: at the begin of an ownership

	Next      time.Duration // until something waits no more: a run, a trigger, the life of a runner; negative: nothing does
	First     int           // priority of the first run that is left, negative: none
	Recovered int64         // runs that lost their runner and wait again
	Crashed   int64         // runs that lost too many
	Runs      []Run
}

// Take takes runs.
func (s *Scheduler) Take(ctx context.Context, t *Take) error {
	r, err := s.do(ctx, takeScript, t.Partition, t.Fence, t.Most, t.MostBackfill, t.Runner, t.Life.Milliseconds(), s.crashes, truth(t.Sleep), truth(t.Unknown))
	if err != nil {
		return err
	}
	t.Next, t.First, t.Recovered, t.Crashed = time.Duration(r.number())*time.Millisecond, int(r.number()), r.number(), r.number()
	for r.more() {
		t.Runs = append(t.Runs, Run{r.text(), r.number(), r.number(), r.number(), r.number(), r.number(), r.number()})
	}
	return r.err
}

func truth(set bool) string {
	if set {
		return "1"
	}
	return ""
}

// Beat says that a runner lives for a time from now, with the runs that it has in a partition. It returns the places of those that
// are not its own any more, and runs that count as its own and are not among them.
func (s *Scheduler) Beat(ctx context.Context, n int, runner string, life time.Duration, runs []Run) (void []int, others []Run, err error) {
	args := []any{runner, life.Milliseconds()}
	for _, run := range runs {
		args = append(args, run.Task, run.Time, run.Generation, run.Attempt)
	}
	r, err := s.do(ctx, beatScript, n, args...)
	if err != nil {
		return nil, nil, err
	}
	for range r.number() {
		void = append(void, int(r.number()))
	}
	for r.more() {
		others = append(others, Run{Task: r.text(), Time: r.number(), Generation: r.number(), Attempt: r.number()})
	}
	return void, others, r.err
}

// Results of attempts.
const (
	Success     = "success"
	Skipped     = "skipped"
	Failed      = "failed"
	Timeout     = "timeout"
	Interrupted = "interrupted" // it waits again, uncounted
)

// An End is how an attempt ended. After Failed and Timeout another one follows in Wait if the task has one left, none if Wait
// is negative.
type End struct {
	*Run
	Result, Error string
	Wait          time.Duration

	Accepted bool // the attempt ran until now
}

// Finish ends attempts of a partition, at most PerCall. It may be repeated: what has ended is not accepted.
func (s *Scheduler) Finish(ctx context.Context, n int, ends []*End) error {
	c := s.finishCall(n, ends)
	s.client.Run(ctx, c)
	return readEnds(c, ends)
}

// Finishes ends attempts of several partitions. It returns the errors by partition.
func (s *Scheduler) Finishes(ctx context.Context, by map[int][]*End) map[int]error {
	type part struct {
		n    int
		ends []*End
	}
	var parts []part
	var calls []*store.ScriptCall
	for n, ends := range by {
		for some := range slices.Chunk(ends, PerCall) {
			parts, calls = append(parts, part{n, some}), append(calls, s.finishCall(n, some))
		}
	}
	s.client.Run(ctx, calls...)
	errs := map[int]error{}
	for i, p := range parts {
		if err := readEnds(calls[i], p.ends); err != nil {
			errs[p.n] = err
		}
	}
	return errs
}

// lowestPlaces is where runs of the lowest priority begin in the ready queue; see admit in cells.lua.
var lowestPlaces = strconv.Itoa(Backfill) + "e15"

// Waiting returns how many runs of the lowest priority wait in all partitions, and how many of a job are held.
func (s *Scheduler) Waiting(ctx context.Context, partitions int, job string) (int64, error) {
	pipe := s.client.Retrying.Pipeline()
	counts := make([]*redis.IntCmd, 0, 2*partitions)
	for n := range partitions {
		counts = append(counts, pipe.ZCount(ctx, s.key("sready", n), lowestPlaces, "+inf"), pipe.ZLexCount(ctx, s.key("swait", n), "["+job+"/", "("+job+"0")) // "0" follows "/"
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	var all int64
	for _, n := range counts {
		all += n.Val()
	}
	return all, nil
}

func (s *Scheduler) finishCall(n int, ends []*End) *store.ScriptCall {
	args := make([]any, 0, 7*len(ends))
	for _, e := range ends {
		wait := int64(-1)
		if e.Wait >= 0 {
			wait = e.Wait.Milliseconds()
		}
		args = append(args, e.Task, e.Time, e.Generation, e.Attempt, e.Result, e.Error, wait)
	}
	return s.call(finishScript, n, args)
}

func readEnds(c *store.ScriptCall, ends []*End) error {
	r, err := replyOf(c)
	if err != nil {
		return err
	}
	for _, e := range ends {
		e.Accepted = r.number() == 1
	}
	return r.err
}
