package stage_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/stage"
)

// atPoint is called at each point of a visit.
var atPoint = func() {}

// counting declares a set of counted entities, whose functions take a while.
func counting(app *runnel.App) *stage.Set[counted] {
	set := stage.New(app, "things", func(e counted) string { return e.ID }, &stage.Options{
		Partitions: 7, Lease: 600 * time.Millisecond, Grace: 300 * time.Millisecond,
		Retry: &runnel.Retry{Max: 1000, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond},
	})
	step := func(name string, wants func(counted) bool, do func(*counted)) {
		set.Stage(name, func(e counted) bool {
			atPoint()
			return wants(e)
		}, func(_ context.Context, e *counted) (stage.Result, error) {
			atPoint()
			time.Sleep(rand.N(4 * time.Millisecond))
			do(e)
			atPoint()
			return stage.Updated, nil
		}, nil)
	}
	step("geo", func(e counted) bool { return e.Geo != e.N }, func(e *counted) { e.Geo = e.N })
	step("photo", func(e counted) bool { return e.Photo != e.Geo }, func(e *counted) { e.Photo = e.Geo })
	return set
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
