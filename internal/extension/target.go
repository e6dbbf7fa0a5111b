package extension

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/rules"
	"github.com/runnel-go/runnel/internal/store"
)

// A Target is a part of a stream that commands act on as on a processor: pause, resume, block, unblock, parked
// and dead take it as OWNER/PART. A rule for it has the scope processor:OWNER/PART.
type Target struct {
	Owner, Part string
	Processor   string // of the stream Owner: its executors run the part, so that pause --wait asks them
	Noun        string // what the part works on, as in "1 visit dropped"

	// Pause and Resume, where the part keeps its own pauses, do what the commands of these names are asked for, and return what
	// they did; Running returns how much of it runs. Nil: rules do.
	Pause   func(ctx context.Context, p Pause) (did string, err error)
	Resume  func(ctx context.Context, who string) (did string, err error)
	Running func(ctx context.Context) (int, error)

	Parked FailureStore // what waits for another attempt; nil: nothing does
	Dead   FailureStore // what had its last attempt; nil: nothing is kept
}

// A Pause is who pauses a part, why, and for how long; 0: until it is resumed.
type Pause struct {
	Who, Why string
	For      time.Duration
}

// A FailureStore is what failed at a target and lies in one state: parked or dead. Its methods may be called
// concurrently.
type FailureStore interface {
	// List returns what the filter selects, in the order in which the work came. It ends with the first error.
	List(ctx context.Context, f Filter) iter.Seq2[Failure, error]
	// Retry has failures that List returned attempted again, at this target alone: parked ones now, dead ones
	// from attempt 1. It passes over those that are gone, and returns the others, even with an error.
	Retry(ctx context.Context, of []Failure) ([]Failure, error)
	// Drop deletes failures that List returned, for good. It returns the deleted ones, even with an error.
	Drop(ctx context.Context, of []Failure) ([]Failure, error)
}

// States of a Failure.
const (
	Running = "running" // an attempt has begun
	Waiting = "waiting" // for its time
	Due     = "due"     // for the owner of its partition
	Behind  = "behind"  // for one before it
	Dead    = "dead"
)

// A Failure is a piece of work that failed, such as an event.
type Failure struct {
	Partition int        `json:"partition"`
	ID        string     `json:"id"`    // in its store
	Event     string     `json:"event"` // partition/entry ID, "" if it is no event
	Key       string     `json:"key"`   // as text to read
	State     string     `json:"state"`
	Reason    string     `json:"reason"`
	Attempts  int        `json:"attempts"`
	At        *time.Time `json:"at,omitempty"`    // of the next attempt
	In        int64      `json:"in"`              // ms until then, 0 if past
	First     *time.Time `json:"first,omitempty"` // failure
	Last      *time.Time `json:"last,omitempty"`  // failure
	Died      *time.Time `json:"died,omitempty"`
	Error     string     `json:"error"`
	Epoch     int64      `json:"epoch"` // of the ownership that gave it up

	Fields map[string]any `json:"-"` // what is stored of it, where the filter asks for that
	Own    any            `json:"-"` // of its store
}

// A Filter selects failures; each zero field selects all.
type Filter struct {
	Partitions []int
	Key        *string
	ID         string
	Since      time.Time // earliest time of becoming dead
	Error      string    // a part of the error or the reason, in any case
	Limit      int       // most failures, the oldest ones
	Fields     bool      // with Failure.Fields, which may be large
}

// Chooses reports whether the filter selects a failure, without regard to its limit.
func (f *Filter) Chooses(one *Failure) bool {
	within := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(f.Error)) }
	return (len(f.Partitions) == 0 || slices.Contains(f.Partitions, one.Partition)) && (f.Key == nil || *f.Key == one.Key) &&
		(f.ID == "" || f.ID == one.ID || f.ID == one.Event) && (one.Died == nil || !one.Died.Before(f.Since)) &&
		(within(one.Error) || within(one.Reason))
}

// Of yields the failures that the filter selects, up to its limit, with Fields only if it asks for them; an error is the last.
func (f *Filter) Of(all iter.Seq2[Failure, error]) iter.Seq2[Failure, error] {
	return func(yield func(Failure, error) bool) {
		listed := 0
		for one, err := range all {
			if err == nil && !f.Chooses(&one) {
				continue
			}
			if !f.Fields {
				one.Fields = nil
			}
			if listed++; !yield(one, err) || err != nil || listed == f.Limit {
				return
			}
		}
	}
}

// A NotTargetError is returned for a part that an extension's owner does not have.
type NotTargetError struct {
	Owner, Part string
	There       []string // its parts
}

// Error lists the parts.
func (e *NotTargetError) Error() string {
	return fmt.Sprintf("%s has no part %q; it has %s", e.Owner, e.Part, strings.Join(e.There, ", "))
}

// Targets returns the parts of an owner, or all for "".
func Targets(ctx context.Context, app any, c *store.Client, owner string) (targets []Target, err error) {
	for _, e := range All(app) {
		if e.Extension.Targets == nil {
			continue
		}
		if there, err := e.There(ctx, c); err != nil || !there {
			if err != nil {
				return nil, err
			}
			continue
		}
		some, err := e.Extension.Targets(ctx, c, owner)
		if err != nil {
			return nil, e.wrap(err)
		}
		targets = append(targets, some...)
	}
	return targets, nil
}

// FindTarget returns a part of an owner, nil for an owner that belongs to no extension, or a *NotTargetError.
func FindTarget(ctx context.Context, app any, c *store.Client, owner, part string) (*Target, error) {
	all, err := Targets(ctx, app, c, owner)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	missing := &NotTargetError{Owner: owner, Part: part}
	for i := range all {
		if all[i].Part == part {
			return &all[i], nil
		}
		missing.There = append(missing.There, all[i].Part)
	}
	return nil, missing
}

// Recognize marks the rules of a state whose scope is a part, so that Stops does not call that absent; nor does it
// where the error says that this cannot be told. It asks Redis only where a rule names no processor of the core.
func Recognize(ctx context.Context, app any, c *store.Client, state *inspect.AppState) error {
	var errs []error
	for _, r := range state.Stops() {
		scope, err := rules.ParseScope(r.Scope)
		if err != nil || !r.Absent || scope.ProcessorName() == "" {
			continue
		}
		t, err := FindTarget(ctx, app, c, scope.StreamName(), scope.ProcessorName())
		if errors.As(err, new(*NotTargetError)) || err == nil && t == nil {
			continue
		}
		state.Parts = append(state.Parts, r.Scope)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
