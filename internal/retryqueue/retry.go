package retryqueue

import (
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Retry says how often, and when, an event that failed is attempted again. The
// root package fills it in.
type Retry struct {
	Max   int // attempts in all
	Order Order
	Wait  func(attempts int) time.Duration // after so many attempts; may be called concurrently
}

// An Order says what waits for an event between two attempts.
type Order int

const (
	OrderPartition Order = iota + 1 // the partition
	OrderKey                        // the events of its key
	OrderNone                       // the event alone
)

// A Verdict says what becomes of an event that failed.
type Verdict int

const (
	Again Verdict = iota + 1 // another attempt, if there are any left; else a dead letter
	Dead                     // a dead letter
	Drop                     // counted, logged, acked
)

// Why an event is parked, or a dead letter.
const (
	ReasonFailed = "failed" // its last attempt failed
	ReasonDecode = "decode" // it cannot be decoded
	ReasonCrash  = "crash"  // its last attempt ended with its worker or its ownership
	ReasonDead   = "dead"   // the function said so
)

// A Failure is an event that failed, and what becomes of it.
type Failure struct {
	Entry   redisconn.Entry
	Err     error
	Verdict Verdict
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
