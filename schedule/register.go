package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/jobs"
	"github.com/runnel-go/runnel/internal/outage"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// register stores the jobs of the code, by one operation: each unless it is there or a later definition has replaced it.
func (c *crew) register(ctx context.Context) {
	s := c.s
	outage.Retry(ctx, s.log, "jobs", func() error {
		all, err := s.calls.Ledger().Jobs(ctx)
		if err != nil {
			return err
		}
		var defs []*jobs.Job
		for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
			switch hash, old := hashOf(s.jobs[name]), hashesOf(all[name]); {
			case !slices.Contains(old, hash):
				defs = append(defs, s.jobs[name])
			case old[len(old)-1] != hash:
				s.log.Warn("job replaced since", "job", name, "by", all[name].By)
			}
		}
		if len(defs) == 0 {
			return nil
		}
		op, err := ischedule.ApplyOp(defs...)
		if err != nil {
			return err
		}
		// The same code asks once: what was removed since stays so, and an operation under way goes on.
		op.ID, op.By, op.FromCode = "code "+hashOf(s.jobs), "code", true
		_, err = s.calls.Ledger().Submit(ctx, op)
		return err
	})
}

// hashesOf returns the hashes of the last definitions of a job, that of the present one last, nil for no job.
func hashesOf(j *ischedule.Job) []string {
	if j == nil {
		return nil
	}
	return append(slices.Clone(j.Replaced), hashOf(j.Def))
}

// hashOf tells definitions apart. Those that cannot be encoded cannot be stored.
func hashOf(of any) string {
	text, _ := json.Marshal(of)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
