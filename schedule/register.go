package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/outage"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// register stores the jobs of the code, each unless it is there or a later definition has replaced it.
func (c *crew) register(ctx context.Context) {
	s := c.s
	if len(s.jobs) == 0 {
		return
	}
	outage.Retry(ctx, s.log, "jobs", func() error {
		all, err := s.calls.Ledger().Jobs(ctx)
		if err != nil {
			return err
		}
		for _, name := range inOrder(s.jobs) {
			if err := c.registerOne(ctx, name, s.jobs[name], all[name]); err != nil {
				return fmt.Errorf("job %s: %w", name, err)
			}
		}
		return nil
	})
}

func (c *crew) registerOne(ctx context.Context, name string, j *jobs.Job, stored *ischedule.Job) error {
	s := c.s
	hash, err := hashOf(j)
	if err != nil {
		return err
	}
	rev := int64(0)
	if stored != nil {
		is, err := hashOf(stored.Def)
		if err != nil || is == hash {
			return err
		}
		for _, old := range stored.Replaced {
			if old == hash {
				s.log.Warn("job replaced since", "job", name, "by", stored.By)
				return nil
			}
		}
		rev = stored.Rev
	}
	def, err := j.Encode()
	if err != nil {
		return err
	}
	_, err = s.calls.Ledger().Submit(ctx, &ischedule.Op{
		ID: fmt.Sprintf("code %s %s %d", name, hash, rev), Kind: ischedule.OpApply, Job: name, Def: def, FromCode: true, By: "code",
	})
	return err
}

// inOrder returns the names of jobs, each behind those whose tasks it waits for.
func inOrder(all map[string]*jobs.Job) (names []string) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] || all[name] == nil {
			return
		}
		seen[name] = true
		for _, t := range all[name].Tasks {
			for _, text := range slices.Concat(t.After, t.OnFailure) {
				if r, err := jobs.ParseRef(name, text); err == nil {
					visit(r.Job)
				}
			}
		}
		names = append(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		visit(name)
	}
	return names
}
