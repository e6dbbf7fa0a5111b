package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/jobs"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

const (
	// forgetEvery is how often an owner looks whether there is something to forget, with some more for each partition: it looks at all.
	forgetEvery      = 10 * time.Second
	forgetEveryEach  = 50 * time.Millisecond
	forgetAgain      = 2 * time.Second     // until the facts of a look are acked
	forgetOpenBehind = 30 * 24 * time.Hour // what may be told more stays so long
)

// A memory is what an owner knows of what it may forget: cells that were over at a look, once all facts that were there then are acked.
// An owner that applies one of those later is told by the horizon, which is the last of them in each partition.
type memory struct {
	busy    bool      // something has ended since the last round
	next    time.Time // when to go on
	looked  time.Time // by the clock of the partition; zero: there was no look
	horizon []string
}

// forget takes a step of forgetting, if it is time. It returns how long until the next, negative: there is nothing to forget.
func (o *owner) forget() (time.Duration, error) {
	m := &o.memory
	switch wait := time.Until(m.next); {
	case !m.busy && m.looked.IsZero():
		return -1, nil
	case wait > 0:
		return wait, nil
	}
	tasks, err := o.tasks()
	if err != nil {
		return 0, err
	}
	cells, err := o.s.calls.View().Cells(o.ctx, o.partition)
	if err != nil {
		return 0, err
	}
	wait := forgetEvery + time.Duration(o.s.partitions())*forgetEveryEach
	if cells <= int64(o.keep())*int64(max(len(tasks), 1)) {
		m.looked = time.Time{}
	} else if wait, err = o.forgetSome(tasks, wait); err != nil {
		return 0, err
	}
	m.busy, m.next = false, time.Now().Add(wait)
	return wait, nil
}

// forgetSome looks, or forgets what was over at the look, once no fact of then is under way.
func (o *owner) forgetSome(tasks []string, every time.Duration) (time.Duration, error) {
	m, now := &o.memory, o.own.Now()
	ends, acked, err := o.s.calls.View().Facts(o.ctx, o.s.partitions())
	if err != nil {
		return 0, err
	}
	if m.looked.IsZero() {
		m.looked, m.horizon = now, ends
		return forgetAgain, nil
	}
	for n, end := range m.horizon {
		if entryid.Compare(acked[n], end) < 0 {
			return forgetAgain, nil
		}
	}
	p := &ischedule.Prune{
		Fence: o.fence, Looked: m.looked.UnixMilli(), Keep: o.keep(), KeepMin: cmp.Or(o.s.opts.KeepMin, defaultKeepMin), KeepOpen: forgetOpenBehind, Horizon: m.horizon,
	}
	for p.Tasks = range slices.Chunk(tasks, ischedule.PerCall) {
		for more := true; more && !o.over(nil); {
			if _, more, err = o.s.calls.Prune(o.ctx, o.partition, p); err != nil {
				return 0, err
			}
		}
	}
	m.looked = time.Time{}
	return every, nil
}

func (o *owner) keep() int { return cmp.Or(o.s.opts.Keep, defaultKeep) }

// tasks returns the tasks of the partition.
func (o *owner) tasks() (tasks []string, err error) {
	all, err := o.s.calls.Ledger().Jobs(o.ctx)
	for name, j := range all {
		for _, t := range j.Def.Tasks {
			if task := (jobs.Source{Job: name, Name: t.Name}).String(); o.s.partition(task) == o.partition {
				tasks = append(tasks, task)
			}
		}
	}
	return tasks, err
}
