package sets

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
)

// Play returns the stages of a *stage.Set for tests that run them without Redis; false for anything else.
// Package stage sets it.
var Play func(set any) (*Player, bool)

// A Player calls the functions of a set as its workers do.
type Player struct {
	App    any      // a *runnel.App
	Stages []string // in the order of their registration
	Retry  func(stage string) *retryqueue.Retry
	// Stored returns a value as it would come back from Redis.
	Stored func(value any) (any, error)
	Wants  func(stage string, value any) (bool, error)
	// Call calls the function of a stage. Err is its error.
	Call func(ctx context.Context, v Call) Called
	// Pass adds one change by a stage to the passes of an entity, "" for none so far, and reports whether
	// a worker would slow the entity down.
	Pass func(passes string, now time.Time) (more string, slow bool)
}

// A Call is a call of a stage's function.
type Call struct {
	Stage   string
	Value   any
	Version int64
	Attempt int
	Due     time.Time // and the time that stage.Now returns
}

// A Called is what a function has returned.
type Called struct {
	Result string    // "untouched", "updated" or "deleted"
	Value  any       // what it made of the value
	Again  time.Time // when another visit is due, zero for none
	Err    error
}
