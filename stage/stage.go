package stage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/retryqueue"
	istage "github.com/runnel-go/runnel/internal/stage"
)

// A Func does a stage's work on one entity. Functions of all stages run one at a time per entity. ctx
// ends when the partition is lost, when the grace period of a release or shutdown is over, and after
// the stage's Timeout. An error, a panic included, is attempted again as the stage's Retry says;
// runnel.RetryAfter, DeadLetter and Drop say otherwise.
type Func[T any] func(ctx context.Context, e *T) (Result, error)

// StageOptions configure a stage. A zero field takes the set's, else the default.
type StageOptions struct {
	// Concurrency is how many entities one worker has in this stage at once. Default 16.
	Concurrency int
	// Retry sets how often a failing visit is attempted. Its Order must be zero. Default: that of the
	// set, else of Options.Processor, else Max 8.
	Retry *runnel.Retry
	// Timeout is how long one call may take, until its context ends. Negative: none.
	Timeout time.Duration
}

const (
	defaultConcurrency = 16
	defaultAttempts    = 8
)

func (o *StageOptions) check(app *runnel.App) error {
	switch {
	case o.Concurrency < 0:
		return fmt.Errorf("Concurrency %d is negative", o.Concurrency)
	case o.Retry != nil && o.Retry.Order != 0:
		return errors.New("Retry: Order is of events; visits of one entity run in turn")
	case o.Retry == nil:
		return nil
	}
	inherited, err := appview.Of(app).Inherited()
	if err != nil {
		return err
	}
	_, err = inherited.Retry(o.Retry, defaultAttempts)
	return err
}

// A stage is a Stage without its type.
type stage struct {
	name  string
	when  func(value any) bool // nil: always
	do    func(ctx context.Context, value any) (Result, any, error)
	opts  StageOptions
	retry *retryqueue.Retry // resolved
	limit time.Duration     // of a call, 0: none

	places places
	count  counters
}

// named returns what people read of a stage.
func named(stage string) string {
	if stage == istage.Touch {
		return "(touch)"
	}
	return stage
}

// wants reports whether the stage wants to visit an entity now. A panic is an error.
func (s *stage) wants(value any) (wants bool, err error) {
	if s.when == nil {
		return true, nil
	}
	defer recoverInto(&err)
	return s.when(value), nil
}

// errGoexit is the error of a Func that called runtime.Goexit.
var errGoexit = errors.New("the function ended its goroutine (runtime.Goexit)")

// call calls the Func, and returns what it made of the entity, unless the Func ends the goroutine.
func (s *stage) call(ctx context.Context, value any) (r Result, made any, err error) {
	var late error
	if s.limit > 0 {
		late = fmt.Errorf("%w: it took longer than %v", runnel.ErrTimeout, s.limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.limit, late)
		defer cancel()
	}
	func() {
		defer recoverInto(&err)
		r, made, err = s.do(ctx, value)
	}()
	if err != nil && late != nil && context.Cause(ctx) == late {
		err = fmt.Errorf("%w: %w", late, err)
	}
	return r, made, err
}

func recoverInto(err *error) {
	if v := recover(); v != nil {
		*err = &runnel.PanicError{Value: v, Stack: debug.Stack()}
	}
}
