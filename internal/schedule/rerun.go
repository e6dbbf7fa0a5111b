package schedule

import "context"

// A Place is a task at a logical time, in ms since 1970.
type Place struct {
	Task string
	Time int64
}

// What becomes of frozen cells.
const (
	Cleared   = "cleared"
	Cancelled = "cancelled" // what is not over alone, and without Thaw
)

// Freeze is the first half of an operation on cells of a partition, at most PerCall: it makes void what they have. It returns of each the
// generation that its next firing has, 0 where a later operation was there before or the task is not. It may be repeated.
func (s *Scheduler) Freeze(ctx context.Context, n int, operation int64, to string, places []Place) ([]int64, error) {
	args := []any{operation, to}
	for _, p := range places {
		args = append(args, p.Task, p.Time)
	}
	r, err := s.do(ctx, freezeScript, n, args...)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(places))
	for i := range out {
		out[i] = r.number()
	}
	return out, r.err
}

// A Thaw is the second half of a re-run for one cell.
type Thaw struct {
	Place
	Fires  bool             // by itself
	Silent bool             // its end emits nothing
	Waits  map[string]int64 // for this generation of a source
}

// Thaw is the second half, with the priority of the runs. It may be repeated.
func (s *Scheduler) Thaw(ctx context.Context, n int, operation, priority int64, thaws []Thaw) error {
	args := []any{operation, priority}
	for _, t := range thaws {
		args = append(args, t.Task, t.Time, truth(t.Fires), truth(t.Silent), len(t.Waits))
		for source, generation := range t.Waits {
			args = append(args, source, generation)
		}
	}
	_, err := s.do(ctx, thawScript, n, args...)
	return err
}
