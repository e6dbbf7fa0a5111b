package schedule

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/store"
)

// A Cell is what is stored of a task at a logical time, but for what only scripts need; cells.lua says what its fields are.
type Cell struct {
	State      string          `json:"s"`
	Generation int64           `json:"g"`
	Crashes    int64           `json:"k"`
	Failed     int64           `json:"m"`
	Owed       int64           `json:"d"`
	Counted    int64           `json:"c"`
	Edges      map[string]Edge `json:"e"` // by source
	Frozen     int64           `json:"z"`
	Rerun      string          `json:"o"`
	Priority   int64           `json:"p"`
	Attempts   []AttemptOfCell `json:"A"`

	AttemptOfCell // the last one
}

// An Edge is what came of a source: the largest generation, the smallest that counts, the one that the last firing used.
type Edge [3]int64

// Came reports whether the edge has the token that it waits for.
func (e Edge) Came() bool { return e[0] >= e[1] }

// An AttemptOfCell is one of its attempts.
type AttemptOfCell struct {
	Attempt int64  `json:"a"`
	Begun   int64  `json:"b"`
	Ended   int64  `json:"u"`
	Error   string `json:"x"`
}

// A View only reads. Its methods block and may be called concurrently, as those of Scheduler.
type View struct{ s *Scheduler }

// View returns the view of the scheduler.
func (s *Scheduler) View() View { return View{s} }

// A CellAt is a cell with its logical time in ms.
type CellAt struct {
	Time int64 `json:"t"`
	Cell `json:"cell"`
}

// Look returns cells of tasks of a partition before a time, in ms, of each task at most so many, the newest first.
func (v View) Look(ctx context.Context, n int, tasks []string, before int64, most int) (found map[string][]CellAt, err error) {
	err = v.s.do(ctx, "look", n, obj{"most": most, "before": before, "tasks": tasks}, &found)
	return found, err
}

// A Prune forgets cells of a partition; see prune.lua.
type Prune struct {
	Fence    string        `json:"fence"`
	Looked   int64         `json:"looked"` // when the horizon was looked at, in ms
	Keep     int           `json:"keep"`   // logical times of each task
	KeepMin  time.Duration `json:"keepMin"`
	KeepOpen time.Duration `json:"keepOpen"` // of handlers, and of cells that count
	Horizon  []string      `json:"horizon"`  // the last fact of each partition then, all of which have been acked since
	Tasks    []string      `json:"tasks"`
}

// Prune returns how many cells are gone, and whether there are more.
func (s *Scheduler) Prune(ctx context.Context, n int, p *Prune) (gone int64, more bool, err error) {
	err = s.do(ctx, "prune", n, p, &gone)
	return gone, gone >= PerCall, err
}

// A TriggerState is what is stored of a trigger.
type TriggerState struct {
	There    bool
	Position int64     // the last logical time that fired, in ms, or the one before its first
	Omitted  int64     // times that were left out
	At       time.Time // when it goes on, zero: it does not, or it is paused
}

// Trigger returns the state of a trigger of a partition.
func (v View) Trigger(ctx context.Context, n int, id string) (t TriggerState, err error) {
	pipe := v.s.client.Retrying.Pipeline()
	fields, score := pipe.HMGet(ctx, v.s.key("srule", n), "@"+id, "-"+id), pipe.ZScore(ctx, v.s.key("sheap", n), id)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return t, err
	}
	position, there := fields.Val()[0].(string)
	t.There = there
	t.Position, _ = strconv.ParseInt(position, 10, 64) // none is 0
	omitted, _ := fields.Val()[1].(string)
	t.Omitted, _ = strconv.ParseInt(omitted, 10, 64)
	if score.Err() == nil {
		t.At = time.UnixMilli(int64(score.Val())).UTC()
	}
	return t, nil
}

// Loads returns how many runs all partitions have, by state: queued, retry, running and held.
func (v View) Loads(ctx context.Context, partitions int) (map[string]int64, error) {
	loads, states := map[string]int64{}, []string{"queued", "retry", "running", "held"}
	cmds, err := v.s.pipelined(ctx, partitions, func(pipe redis.Pipeliner, n int) {
		for _, kind := range []string{"sready", "slater", "srun", "swait"} {
			pipe.ZCard(ctx, v.s.key(kind, n))
		}
	})
	for i, c := range cmds {
		loads[states[i%len(states)]] += c.(*redis.IntCmd).Val()
	}
	return loads, err
}

// Running returns how many runs of a job run, in all partitions.
func (v View) Running(ctx context.Context, partitions int, job string) (n int, err error) {
	cmds, err := v.s.pipelined(ctx, partitions, func(pipe redis.Pipeliner, n int) { pipe.ZRange(ctx, v.s.key("srun", n), 0, -1) })
	for _, c := range cmds {
		for _, cell := range c.(*redis.StringSliceCmd).Val() {
			if strings.HasPrefix(cell, job+"/") {
				n++
			}
		}
	}
	return n, err
}

// Cells returns how many cells a partition has.
func (v View) Cells(ctx context.Context, n int) (int64, error) {
	return v.s.client.Retrying.HLen(ctx, v.s.key("scell", n)).Result()
}

// Facts returns the last entry of the log of each partition, and up to which one all are acked.
func (v View) Facts(ctx context.Context, partitions int) (ends, acked []string, err error) {
	all := make([]store.Partition, partitions)
	for n := range all {
		all[n] = v.s.client.Partition(v.s.name, Processor, n)
	}
	views, err := v.s.client.Views(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range views {
		if p.Err != nil {
			return nil, nil, p.Err
		}
		ends, acked = append(ends, cmp.Or(p.End, "0-0")), append(acked, cmp.Or(p.Floor, "0-0"))
	}
	return ends, acked, nil
}
