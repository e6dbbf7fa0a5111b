package retryqueue

import (
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/verdict"
)

// A Retry configures how often, and when, a failed event is attempted again. The root package fills
// it in.
type Retry struct {
	Max   int                              // attempts in all
	Order string                           // OrderPartition, …
	Wait  func(attempts int) time.Duration // after so many attempts; may be called concurrently
}

// order returns the Order of a Retry, "" without one.
func (r *Retry) order() string {
	if r == nil {
		return ""
	}
	return r.Order
}

// after returns the delay before the next attempt, in milliseconds.
func (r *Retry) after(f *Failure, attempts int) int64 {
	switch {
	case f.After != nil:
		return f.After.Milliseconds()
	case r == nil:
		return 0
	}
	return r.Wait(attempts).Milliseconds()
}

// decides reports whether a worker's crash during the next attempt makes the event a dead letter.
func (r *Retry) decides(s *store.RetryState) bool { return r != nil && s.Counted()+1 >= r.Max }

// The scope of events that wait between two attempts of one.
const (
	OrderPartition = "partition" // all later events of the partition
	OrderKey       = "key"       // the later events of its key
	OrderNone      = "none"      // nothing
)

// Why an event is parked, or a dead letter.
const (
	ReasonFailed = "failed" // its last attempt failed
	ReasonDecode = "decode" // it cannot be decoded
	ReasonCrash  = "crash"  // its last attempt ended with its worker or its ownership
	ReasonDead   = "dead"   // the function said so
)

// A Failure is an event that failed, and the verdict on it.
type Failure struct {
	Entry   redisconn.Entry
	Err     error
	Verdict verdict.Kind
	Reason  string
	After   *time.Duration // until the next attempt; nil: by Retry.Wait
}

// Counts count events.
type Counts struct {
	Parked  atomic.Int64 // moved aside, to be tried again or to wait behind such an event
	Retried atomic.Int64 // failed, and are to be tried again; each attempt
	Dead    atomic.Int64 // became dead letters
	Dropped atomic.Int64 // dropped, as the function said
	Skipped atomic.Int64 // skipped, as an operator said
}
