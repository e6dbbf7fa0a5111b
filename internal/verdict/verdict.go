// Package verdict is what a user's function says about what it failed at, in its error.
package verdict

import (
	"errors"
	"time"
)

// A Kind is what becomes of an event, or of anything else, that failed.
type Kind int

const (
	Fail  Kind = iota // another attempt, when the backoff says, if there are any left; else a dead letter
	Retry             // the same, after a time that the function chose
	Dead              // a dead letter at once
	Drop              // it is given up without a dead letter
)

// A Verdict is an error with what the function said in it.
type Verdict struct {
	Kind  Kind
	After time.Duration // of Retry: until the next attempt
	Err   error         // what failed
}

// Error returns the message of Err.
func (v *Verdict) Error() string { return v.Err.Error() }

// Unwrap returns Err.
func (v *Verdict) Unwrap() error { return v.Err }

// With returns an error that wraps err and has a verdict, nil if err is. A negative time is none.
func With(err error, kind Kind, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &Verdict{kind, max(after, 0), err}
}

// Of returns the outermost verdict in an error, Fail without one.
func Of(err error) Verdict {
	if said := (*Verdict)(nil); errors.As(err, &said) {
		return *said
	}
	return Verdict{Err: err}
}
