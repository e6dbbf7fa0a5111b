package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/jobs"
)

// Jobs are stored together, more than one call has at most too; a later operation on one of them is in the way of all of its call.
func TestJobsAreStoredTogether(t *testing.T) {
	inPartition(t, &task{name: "j0/task/a", tries: 1}, func(t *testing.T, m *sim, _ int) {
		l, ctx := m.s.Ledger(), t.Context()
		all := map[string]*Job{}
		for n := range PerCall + 2 {
			name := fmt.Sprint("j", n)
			all[name] = &Job{Rev: 5, Def: &jobs.Job{Name: name}}
		}
		m.must(m.rdb.HSet(ctx, m.s.keysOf(0)[1], "tenure", "o").Err())
		m.must(l.StoreJobs(ctx, "o", 5, all))
		stored, err := l.Jobs(ctx)
		m.must(err)
		m.want("jobs", len(stored), PerCall+2)
		err = l.StoreJobs(ctx, "o", 4, map[string]*Job{"new": {Rev: 4, Def: &jobs.Job{Name: "new"}}, "j1": nil})
		m.want("the earlier operation is too late", errors.Is(err, ErrLater), true)
		again, err := l.Jobs(ctx)
		m.must(err)
		m.want("jobs behind it", len(again), PerCall+2)
		m.must(l.StoreJobs(ctx, "o", 6, map[string]*Job{"j1": nil}))
		again, err = l.Jobs(ctx)
		m.must(err)
		m.want("jobs without one", len(again), PerCall+1)
	})
}

func TestMostBytesOfJobs(t *testing.T) {
	def := func(bytes int) *jobs.Job { return &jobs.Job{Name: "j", Description: strings.Repeat("x", bytes)} }
	if _, err := ApplyOp(def(jobs.MostBytes/3), def(jobs.MostBytes/3)); err != nil {
		t.Error(err)
	}
	if _, err := ApplyOp(def(jobs.MostBytes/2), def(jobs.MostBytes/2)); err == nil || !strings.Contains(err.Error(), "apply them in parts") {
		t.Error(err)
	}
}
