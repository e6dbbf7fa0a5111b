package history

import "github.com/runnel-go/runnel/internal/test/exact"

// once checks that each event of an Atomic processor has counted once, in its rows and in what was emitted.
func (r *Report) once(stage exact.Stage) {
	v := stage.Judge()
	r.Once += v.Events - v.Skipped
	for _, fault := range v.Faults {
		r.Violations = append(r.Violations, Violation{Class: ClassOnce, Where: stage.Name, What: fault})
	}
}
