package schedule

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// MaxCrashes is how many workers a run may lose before it has crashed for good.
const MaxCrashes = 3

// Priorities, as cells have them. Facts hand one on to what they fire; with Own that has the priority of its task.
const (
	Own                         = -1
	High, Normal, Low, Backfill = 0, 1, 2, 3
)

// A Run is an attempt that has begun.
type Run struct {
	Place
	Generation int64 `json:"generation"`
	Attempt    int64 `json:"attempt"`
	Failed     int64 `json:"failed"` // earlier attempts of the generation that failed
	Priority   int64 `json:"priority"`
	Rev        int64 `json:"rev"` // of its definition
}

// A Take takes runs of a partition for a runner. Repeated, it takes others: those of a lost reply count as the runner's until
// Beat does not name them.
type Take struct {
	Partition    int           `json:"-"`
	Fence        string        `json:"fence"`  // of the ownership: its lock value
	Most         int           `json:"most"`   // at most, 0: only tell
	MostBackfill int           `json:"lowest"` // of the lowest priority
	Runner       string        `json:"runner"`
	Life         time.Duration `json:"life"`    // of the runner, from now
	Sleep        bool          `json:"sleep"`   // wakes are wanted if there is nothing to do
	Unknown      bool          `json:"unknown"` // recover runs whose runner nothing is known of, too: at the begin of an ownership
	Taken        `json:"-"`
}

// Taken is the answer.
type Taken struct {
	Next      time.Duration `json:"next,string"` // until something waits no more: a run, a trigger, the life of a runner; negative: nothing does
	First     int           `json:"first"`       // priority of the first run that is left, negative: none
	Recovered int64         `json:"recovered"`   // runs that lost their runner and wait again
	Crashed   int64         `json:"crashed"`     // runs that lost too many
	Runs      []Run         `json:"runs"`
}

// Take takes runs.
func (s *Scheduler) Take(ctx context.Context, t *Take) error {
	ask := struct {
		*Take
		Crashes int `json:"crashes"`
	}{t, s.crashes}
	return s.do(ctx, "take", t.Partition, ask, &t.Taken)
}

// Beat says that a runner lives for a time from now, with the runs that it has in a partition. It returns the places of those that
// are not its own any more, and runs that count as its own and are not among them.
func (s *Scheduler) Beat(ctx context.Context, n int, runner string, life time.Duration, runs []Run) (void []int, others []Run, err error) {
	var r struct {
		Void   []int
		Others []Run
	}
	err = s.do(ctx, "beat", n, obj{"runner": runner, "life": life, "runs": runs}, &r)
	return r.Void, r.Others, err
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
	Result string        `json:"result"`
	Error  string        `json:"error,omitempty"`
	Wait   time.Duration `json:"wait"`

	Accepted bool  `json:"-"` // the attempt ran until now
	Err      error `json:"-"` // of the call: it may have ended, or not
}

// Finish ends attempts by partition, and tells each what became of it. It may be repeated: what has ended is not accepted.
func (s *Scheduler) Finish(ctx context.Context, by map[int][]*End) {
	inTrip(ctx, s, "finish", by, alone, func(ends []*End, accepted []bool, err error) {
		for i, e := range ends {
			e.Accepted, e.Err = err == nil && accepted[i], err
		}
	})
}

// Waiting returns how many runs of the lowest priority wait in all partitions, and how many of a job are held.
func (s *Scheduler) Waiting(ctx context.Context, partitions int, job string) (int64, error) {
	cmds, err := s.pipelined(ctx, partitions, func(pipe redis.Pipeliner, n int) {
		// See admit in cells.lua; "0" follows "/".
		pipe.ZCount(ctx, s.key("sready", n), strconv.Itoa(Backfill)+"e15", "+inf")
		pipe.ZLexCount(ctx, s.key("swait", n), "["+job+"/", "("+job+"0")
	})
	var all int64
	for _, n := range cmds {
		all += n.(*redis.IntCmd).Val()
	}
	return all, err
}
