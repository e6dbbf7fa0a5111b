package worker

import (
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Retry says how often, and when, an event that failed is attempted again. The
// root package fills it in.
type Retry struct {
	Max   int // attempts in all
	Order RetryOrder
	Wait  func(attempts int) time.Duration // after so many attempts; may be called concurrently
}

// A RetryOrder says what waits for an event between two attempts.
type RetryOrder int

const (
	RetryBlock RetryOrder = iota + 1 // the partition
	RetryKey                         // the events of its key
	RetryLater                       // the event alone
)

// A Verdict says what becomes of an event that failed.
type Verdict int

const (
	Again Verdict = iota + 1 // another attempt, if there are any left; else a dead letter
	Bury                     // a dead letter
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
