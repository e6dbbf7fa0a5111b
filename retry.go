package runnel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/verdict"
)

// A Retry sets how often an event is attempted and which events wait meanwhile. An event
// that failed is parked: moved out of the partition to a place beside it in Redis,
// together with its number of attempts, which so outlasts crashes and rebalances. After
// the last attempt the event is a dead letter.
//
// An event that crashes its process each time becomes a dead letter, too. Each attempt
// after the first is stored before the function is called. The first costs no write: the
// next owner counts it if the worker ended uncleanly while this was its oldest event in
// progress.
//
// middleware.RetryInPlace, by contrast, calls the function again at once and holds the
// partition and its lease meanwhile. Use RetryInPlace for hiccups of milliseconds, and
// Retry for failures that may last longer or must be counted.
type Retry struct {
	// Max is the largest number of attempts, the first one included: 1 is one
	// attempt and then a dead letter. It must be at least 1.
	Max int
	// MinBackoff is how long to wait after the first attempt; default 1 s. Each further wait is
	// Factor times longer, at most MaxBackoff (default 5 min). Factor is at least 1; default 2.
	MinBackoff, MaxBackoff time.Duration
	Factor                 float64
	// Jitter is the largest random part by which a wait is shorter or longer, up to 1; default
	// 0.2, negative: none. No wait is longer than MaxBackoff.
	Jitter float64
	// Order selects the events that wait for one that failed. Default OrderPartition.
	Order RetryOrder
}

// A RetryOrder is the order that holds while an event is between two attempts.
type RetryOrder int

const (
	OrderPartition RetryOrder = iota + 1 // the partition: its order stays strict. The default
	OrderKey                             // later events of the same key, which are parked behind it; other keys flow
	OrderNone                            // nothing but the event itself: later ones of its key may pass it
)

// String returns the name of the order.
func (o RetryOrder) String() string {
	return nameOf("RetryOrder", int(o), retryqueue.OrderPartition, retryqueue.OrderKey, retryqueue.OrderNone)
}

const (
	defaultMinBackoff = time.Second
	defaultMaxBackoff = 5 * time.Minute
	defaultFactor     = 2
	defaultJitter     = 0.2
)

func (r *Retry) check() error {
	if r == nil {
		return nil
	}
	switch {
	case r.Max < 1:
		return fmt.Errorf("Retry: Max %d is below 1", r.Max)
	case r.Order < 0 || r.Order > OrderNone:
		return fmt.Errorf("Retry: unknown order %d", r.Order)
	case r.MinBackoff < 0 || r.MaxBackoff < 0:
		return fmt.Errorf("Retry: a wait is negative")
	case r.Factor != 0 && !(r.Factor >= 1 && !math.IsInf(r.Factor, 1)):
		return fmt.Errorf("Retry: Factor %v is below 1", r.Factor)
	case !(r.Jitter <= 1):
		return fmt.Errorf("Retry: Jitter %v is above 1", r.Jitter)
	}
	return nil
}

// build returns the retry as a worker knows it, nil for none.
func (r *Retry) build() *retryqueue.Retry {
	if r == nil {
		return nil
	}
	own := *r
	return &retryqueue.Retry{
		Max: r.Max, Order: cmp.Or(r.Order, OrderPartition).String(),
		Wait: func(attempts int) time.Duration { return own.wait(attempts, rand.Float64()) },
	}
}

// wait returns how long to wait after this many attempts. chance is random, from 0 to 1.
func (r *Retry) wait(attempts int, chance float64) time.Duration {
	longest := float64(cmp.Or(r.MaxBackoff, defaultMaxBackoff))
	factor, jitter := cmp.Or(r.Factor, defaultFactor), cmp.Or(r.Jitter, defaultJitter)
	d := float64(cmp.Or(r.MinBackoff, defaultMinBackoff)) * math.Pow(factor, float64(attempts-1))
	d = min(d, longest) // before the jitter, so that waits at the maximum do not end all at once
	return time.Duration(min(d*(1+max(jitter, 0)*(2*chance-1)), longest))
}

// RetryAfter returns an error that asks for the next attempt after d, whatever
// the backoff says. Without a Retry it is like err itself. It is nil if err is.
func RetryAfter(err error, d time.Duration) error {
	return verdict.With(err, verdict.Retry, d)
}

// DeadLetter returns an error that makes the event a dead letter at once, with or without
// a Retry: another attempt would not help. It is nil if err is.
func DeadLetter(err error) error { return verdict.With(err, verdict.Dead, 0) }

// Drop returns an error that drops the event without a dead letter: the event is counted,
// logged and acked, with or without a Retry. The result is nil if err is.
func Drop(err error) error { return verdict.With(err, verdict.Drop, 0) }

// judge returns the failure to record for events that failed with err. It returns nil if
// the policy decides: err is no event's fault, or there is no Retry and err has no
// verdict of the function.
func judge(err error, retry *retryqueue.Retry) *retryqueue.Failure {
	var bad *DecodeError
	said := verdict.Of(err)
	f := &retryqueue.Failure{Err: err, Verdict: said.Kind, Reason: retryqueue.ReasonFailed}
	switch {
	case errors.Is(err, ErrNotConsumed):
		return nil
	case said.Kind == verdict.Drop:
	case said.Kind == verdict.Dead:
		f.Reason = retryqueue.ReasonDead
	case retry == nil:
		return nil
	case errors.As(err, &bad):
		f.Verdict, f.Reason = verdict.Dead, retryqueue.ReasonDecode
	case said.Kind == verdict.Retry:
		f.After = &said.After
	}
	return f
}
