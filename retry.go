package runnel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel/internal/retryqueue"
)

// A Retry says how often an event is attempted and what waits meanwhile. An event
// that failed is parked: moved out of the partition into Redis, together with the
// number of its attempts, so that these last across crashes and rebalances. After
// the last attempt it is a dead letter.
//
// An event that ends its process each time becomes a dead letter, too. Each attempt but
// the first is stored before the function is called. The first costs no write: the next
// owner counts it if the worker ended uncleanly while this was its oldest event in progress.
//
// Compared with middleware.Retry, which calls the function again at once and
// holds the partition and its lease meanwhile: take that for a hiccup of
// milliseconds, and this for what may take longer or must be counted.
type Retry struct {
	// Max is the largest number of attempts, the first one included: 1 is one
	// attempt and then a dead letter. It must be at least 1.
	Max int
	// Backoff is how long to wait between attempts.
	Backoff Backoff
	// Order says what waits for an event that failed. Default RetryBlock.
	Order RetryOrder
}

// A RetryOrder says what waits while an event is between two attempts.
type RetryOrder int

const (
	RetryBlock RetryOrder = iota + 1 // the partition: its order stays strict. The default
	RetryKey                         // later events of the same key, which are parked behind it; other keys flow
	RetryLater                       // nothing but the event itself: later ones of its key may pass it
)

// String returns the name of the order.
func (o RetryOrder) String() string {
	switch o {
	case RetryBlock:
		return "block"
	case RetryKey:
		return "key"
	case RetryLater:
		return "later"
	}
	return fmt.Sprintf("RetryOrder(%d)", int(o))
}

// A Backoff says how long to wait after an attempt that failed: First, then
// Factor times longer each time, at most Cap. Zero fields are defaults.
type Backoff struct {
	First  time.Duration // after the first attempt; default 1 s
	Cap    time.Duration // the longest; default 5 min
	Factor float64       // at least 1; default 2
	Jitter float64       // the largest random part by which a wait is shorter or longer, up to 1; default 0.2, negative: none
}

const (
	defaultFirst  = time.Second
	defaultCap    = 5 * time.Minute
	defaultFactor = 2
	defaultJitter = 0.2
)

func (r *Retry) check() error {
	if r == nil {
		return nil
	}
	b := r.Backoff
	switch {
	case r.Max < 1:
		return fmt.Errorf("Retry: Max %d is below 1", r.Max)
	case r.Order < 0 || r.Order > RetryLater:
		return fmt.Errorf("Retry: unknown order %d", r.Order)
	case b.First < 0 || b.Cap < 0:
		return fmt.Errorf("Retry: a wait is negative")
	case b.Factor != 0 && !(b.Factor >= 1 && !math.IsInf(b.Factor, 1)):
		return fmt.Errorf("Retry: Factor %v is below 1", b.Factor)
	case !(b.Jitter <= 1):
		return fmt.Errorf("Retry: Jitter %v is above 1", b.Jitter)
	}
	return nil
}

// build returns the retry as a worker knows it, nil for none.
func (r *Retry) build() *retryqueue.Retry {
	if r == nil {
		return nil
	}
	backoff := r.Backoff
	return &retryqueue.Retry{
		Max: r.Max, Order: retryqueue.Order(cmp.Or(r.Order, RetryBlock)),
		Wait: func(attempts int) time.Duration { return backoff.wait(attempts, rand.Float64()) },
	}
}

// wait is how long to wait after so many attempts. chance is random, from 0 to 1.
func (b Backoff) wait(attempts int, chance float64) time.Duration {
	longest := float64(cmp.Or(b.Cap, defaultCap))
	factor, jitter := cmp.Or(b.Factor, defaultFactor), cmp.Or(b.Jitter, defaultJitter)
	d := float64(cmp.Or(b.First, defaultFirst)) * math.Pow(factor, float64(attempts-1))
	d = min(d, longest) // before the jitter, so that those at the cap do not come all at once
	return time.Duration(min(d*(1+max(jitter, 0)*(2*chance-1)), longest))
}

// RetryAfter returns an error that asks for the next attempt after d, whatever
// the Backoff says. Without a Retry it is like err itself. It is nil if err is.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &verdictError{err, retryqueue.Again, max(d, 0)}
}

// Dead returns an error that says that no other attempt helps: the event becomes
// a dead letter at once, with or without a Retry. It is nil if err is.
func Dead(err error) error {
	if err == nil {
		return nil
	}
	return &verdictError{err, retryqueue.Dead, 0}
}

// Drop returns an error that says that the event is not worth a dead letter: it
// is counted, logged and acked, with or without a Retry. It is nil if err is.
func Drop(err error) error {
	if err == nil {
		return nil
	}
	return &verdictError{err, retryqueue.Drop, 0}
}

// verdictError is an error with what should follow it.
type verdictError struct {
	err     error
	verdict retryqueue.Verdict
	after   time.Duration
}

func (e *verdictError) Error() string { return e.err.Error() }
func (e *verdictError) Unwrap() error { return e.err }

// judge returns what becomes of events that failed with err, or nil if that is
// the policy's to say: err is no event's fault, or there is no Retry and the
// function did not say what it wants.
func judge(err error, retry *retryqueue.Retry) *retryqueue.Failure {
	var said *verdictError
	var bad *DecodeError
	asked := errors.As(err, &said)
	switch {
	case errors.Is(err, ErrNotConsumed):
		return nil
	case asked && said.verdict == retryqueue.Drop:
		return &retryqueue.Failure{Err: err, Verdict: retryqueue.Drop}
	case asked && said.verdict == retryqueue.Dead:
		return &retryqueue.Failure{Err: err, Verdict: retryqueue.Dead, Reason: retryqueue.ReasonDead}
	case retry == nil:
		return nil
	case errors.As(err, &bad):
		return &retryqueue.Failure{Err: err, Verdict: retryqueue.Dead, Reason: retryqueue.ReasonDecode}
	case asked:
		return &retryqueue.Failure{Err: err, Verdict: retryqueue.Again, Reason: retryqueue.ReasonFailed, After: &said.after}
	}
	return &retryqueue.Failure{Err: err, Verdict: retryqueue.Again, Reason: retryqueue.ReasonFailed}
}
