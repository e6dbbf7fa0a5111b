package store

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestAuditedNotesWhatIsDone(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		c, rdb := e.Client, e.raw
		ctx, cancel := context.WithCancel(t.Context())
		result, unnoted, err := c.Audited(ctx, Audit{What: "burn", On: "gate"}, func(context.Context) (string, error) {
			cancel() // the outcome is noted all the same
			return "half of it", errors.New("no fire" + strings.Repeat("!", auditText))
		})
		if result != "half of it" || unnoted != nil || err == nil {
			t.Errorf("%q, %v, %v", result, unnoted, err)
		}
		all, err := c.Audits(t.Context(), 10)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		if end := all[0]; end.Of != all[1].ID || end.Outcome != "failed" || !strings.HasPrefix(end.Result, "half of it; no fire!") || len(end.Result) != auditText {
			t.Errorf("%+v", end)
		}
		_, unnoted, err = c.Audited(t.Context(), Audit{What: "burn"}, func(ctx context.Context) (string, error) {
			return "done", rdb.Set(ctx, c.keys.Audit(), "no stream", 0).Err()
		})
		if unnoted == nil || err != nil {
			t.Errorf("the outcome cannot be noted: %v, %v", unnoted, err)
		}
		_, unnoted, err = c.Audited(t.Context(), Audit{What: "burn"}, func(context.Context) (string, error) {
			t.Error("what cannot be noted was done")
			return "", nil
		})
		if err == nil || !errors.Is(err, unnoted) {
			t.Errorf("the beginning cannot be noted: %v, %v", unnoted, err)
		}
	})
}
