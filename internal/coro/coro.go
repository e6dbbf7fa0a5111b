// Package coro turns a function that pulls its input inside out.
//
// A processor is written as a loop that pulls:
//
//	for order := range events.Records() { … }
//
// The framework needs the opposite shape, one call per delivery that returns
// the error of that delivery, so that middleware can wrap it. A Loop has that
// shape: it runs the function as a coroutine (iter.Pull), and each Resume
// hands over one item and returns when the function asks for another one or
// returns.
package coro

import (
	"errors"
	"iter"
)

// A Loop is one suspended call of a function that asks for items of type T by
// requests of type W. Its methods must not be called concurrently.
type Loop[W, T any] struct {
	resume func() (W, bool)
	stop   func()
	item   T
	err    error
	ended  bool
}

// ErrExited is the result of a function that ended its goroutine by
// runtime.Goexit instead of returning.
var ErrExited = errors.New("the function ended its goroutine (runtime.Goexit)")

// New returns a Loop over fn, which has not begun yet: the first Resume, whose item is
// discarded, runs fn to its first ask. After the Loop has ended or was stopped, ask
// always returns false.
//
// A panic of fn comes out of Resume or Stop; a runtime.Goexit ends the
// goroutine that resumed it.
func New[W, T any](fn func(ask func(W) (T, bool)) error) *Loop[W, T] {
	l := new(Loop[W, T])
	l.resume, l.stop = iter.Pull(func(yield func(W) bool) {
		defer func() { l.ended = true }()
		l.err = ErrExited
		l.err = fn(func(want W) (item T, ok bool) {
			if l.ended || !yield(want) {
				l.ended = true
				return item, false
			}
			return l.item, true
		})
	})
	return l
}

// Resume hands item to fn and runs fn until its next ask or its return. After an ask it
// returns the request and true; after a return it returns false, and Err has the result.
// It blocks for as long as fn runs.
func (l *Loop[W, T]) Resume(item T) (want W, asked bool) {
	l.item = item
	want, asked = l.resume()
	var zero T
	l.item = zero
	return want, asked
}

// Err returns the result of fn; it is meaningless before fn has returned.
func (l *Loop[W, T]) Err() error { return l.err }

// Stop makes ask return false, waits until fn returns, and returns its result. Further
// calls return the same.
func (l *Loop[W, T]) Stop() error {
	l.stop()
	return l.err
}
