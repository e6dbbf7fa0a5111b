package rebalance

import (
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// Tries at the same time share round trips; one by one, a thousand take long.
	acquisitionsAtOnce = 256
	warningsAtOnce     = 4
	heldBackoffMin     = 50 * time.Millisecond
	heldBackoffMax     = time.Second
	errorBackoffMin    = 100 * time.Millisecond
	errorBackoffMax    = 2 * time.Second
)

// A stage is where a member stands with one partition; see the diagram in doc.go.
type stage int

const (
	queued    stage = iota // for one of the tries that may run at once
	trying                 // an Acquire runs
	waiting                // for the time of the next try
	owned                  // ours
	releasing              // a Release runs
)

// A holding is one partition that is assigned to the member, or not yet given up.
type holding struct {
	stage  stage
	wanted bool      // assigned; only while trying and releasing may it be false
	tries  int       // tries in a row that led to nothing lasting
	until  time.Time // end of waiting
	since  time.Time // begin of owned
	failed bool      // the last try met an error that is not ErrHeld
	retry  bool      // while trying: a failure may be outdated, try again at once
	lost   bool      // while trying: a success is outdated, try again
	left   bool      // the last try may have left a lock behind
}

// partitions is the part of the machine that follows an assignment. It has a holding for
// each partition, independent of the others.
type partitions struct {
	expiry   time.Duration // own lock expiry
	jitter   func(time.Duration) time.Duration
	holdings map[int]*holding
	queue    []int // in the order of queueing; may name holdings that left the stage
	flying   int   // number of tries under way
	atOnce   int   // maximum of flying
	halted   bool  // no partition is acquired any more
	out      []action
}

func (ps *partitions) do(a action) { ps.out = append(ps.out, a) }

// want makes the given partitions the assignment.
func (ps *partitions) want(assignment []int) {
	wanted := make(map[int]bool, len(assignment))
	for _, p := range assignment {
		wanted[p] = true
	}
	for _, p := range ps.numbers() {
		if h := ps.holdings[p]; h.wanted && !wanted[p] {
			ps.giveUp(p, h)
		}
	}
	for _, p := range assignment {
		switch h := ps.holdings[p]; {
		case h == nil:
			ps.holdings[p] = &holding{wanted: true}
			ps.enqueue(p)
		case !h.wanted:
			// A cancelled try most likely ends with an error that means nothing. After a
			// release the partition is acquired again.
			h.wanted, h.retry = true, h.stage == trying
		}
	}
}

func (ps *partitions) giveUp(p int, h *holding) {
	h.wanted = false
	switch h.stage {
	case queued, waiting:
		if h.left {
			ps.release(p, h)
			return
		}
		delete(ps.holdings, p)
	case trying:
		h.retry = false
		ps.do(action{verb: doCancel, partition: p})
	case owned:
		ps.release(p, h)
	}
}

// halt gives up all partitions except the owned ones.
func (ps *partitions) halt() {
	ps.halted = true
	for _, p := range ps.numbers() {
		if h := ps.holdings[p]; h.wanted && h.stage != owned {
			ps.giveUp(p, h)
		}
	}
}

func (ps *partitions) acquired(now time.Time, p int, err error) {
	h := ps.holdings[p]
	if h == nil || h.stage != trying {
		return
	}
	ps.flying--
	retry, lost := h.retry, h.lost
	h.retry, h.lost = false, false
	h.left = err != nil && !errors.Is(err, ErrHeld)
	if h.wanted && !retry {
		ps.note(h, err)
	}
	switch {
	case err == nil && !h.wanted:
		ps.release(p, h)
	case err == nil && lost:
		ps.wait(now, p, errorBackoffMin, errorBackoffMax)
	case err == nil:
		h.stage, h.since = owned, now
	case !h.wanted:
		delete(ps.holdings, p)
	case retry:
		h.tries = 0
		ps.enqueue(p)
	case errors.Is(err, ErrHeld):
		ps.wait(now, p, heldBackoffMin, min(heldBackoffMax, ps.expiry/4))
	default:
		ps.wait(now, p, errorBackoffMin, errorBackoffMax)
	}
}

// note warns of the first error in a row. When all partitions fail, most likely for lack of
// storage, it warns of a few of them.
func (ps *partitions) note(h *holding, err error) {
	failed := err != nil && !errors.Is(err, ErrHeld)
	if failed && !h.failed {
		others := 0
		for _, o := range ps.holdings {
			if o.failed {
				others++
			}
		}
		if others < warningsAtOnce {
			ps.do(action{verb: doWarn, err: err})
		}
	}
	h.failed = failed
}

func (ps *partitions) released(p int) {
	h := ps.holdings[p]
	if h == nil || h.stage != releasing {
		return
	}
	if !h.wanted {
		delete(ps.holdings, p)
		return
	}
	h.tries = 0
	ps.enqueue(p)
}

// freed handles the message that another member released the partition. The message counts
// for a try under way as well, which would otherwise wait although the lock is free:
//  1. we try, and the answer is "held";
//  2. the owner releases and announces it;
//  3. its message is handled here before our result.
func (ps *partitions) freed(p int) {
	h := ps.holdings[p]
	if h == nil || !h.wanted {
		return
	}
	switch h.stage {
	case waiting:
		h.tries = 0
		ps.enqueue(p)
	case trying:
		h.retry = true
	}
}

// lose takes the end of an ownership that was not released. During a try it is the
// ownership that this try has begun:
//  1. Acquire obtains the partition and is about to return nil;
//  2. the owner finds the partition lost and reports it;
//  3. the report is handled here before Acquire's result.
//
// Trusting the result would leave the partition without an owner.
func (ps *partitions) lose(now time.Time, p int) {
	h := ps.holdings[p]
	switch {
	case h == nil:
	case h.stage == trying:
		h.lost = true
	case h.stage == owned && ps.halted:
		delete(ps.holdings, p)
	case h.stage == owned && now.Sub(h.since) < errorBackoffMax:
		// Another program may be destroying the group again and again.
		ps.wait(now, p, errorBackoffMin, errorBackoffMax)
	case h.stage == owned:
		h.tries = 0
		ps.enqueue(p)
	}
}

// due starts the tries that may start now.
func (ps *partitions) due(now time.Time, foreign time.Duration) {
	for _, p := range ps.those(func(h *holding) bool { return h.stage == waiting && !h.until.After(now) }) {
		ps.enqueue(p)
	}
	for ps.flying < ps.atOnce && len(ps.queue) > 0 {
		p := ps.queue[0]
		ps.queue = ps.queue[1:]
		if h := ps.holdings[p]; h != nil && h.stage == queued {
			h.stage = trying
			ps.flying++
			ps.do(action{verb: doAcquire, partition: p, limit: foreign})
		}
	}
}

// deadline returns the time of the next waiting try, zero if none waits.
func (ps *partitions) deadline() time.Time {
	var next time.Time
	for _, h := range ps.holdings {
		if h.stage == waiting {
			next = earlier(next, h.until)
		}
	}
	return next
}

func (ps *partitions) enqueue(p int) {
	ps.holdings[p].stage = queued
	ps.queue = append(ps.queue, p)
}

func (ps *partitions) release(p int, h *holding) {
	h.stage = releasing
	ps.do(action{verb: doRelease, partition: p})
}

func (ps *partitions) wait(now time.Time, p int, least, most time.Duration) {
	h := ps.holdings[p]
	h.stage, h.until = waiting, now.Add(ps.jitter(backoff(h.tries, least, most)))
	h.tries++
}

// at returns the partitions in a stage, ascending.
func (ps *partitions) at(s stage) []int {
	return ps.those(func(h *holding) bool { return h.stage == s })
}

func (ps *partitions) those(is func(*holding) bool) (list []int) {
	for p, h := range ps.holdings {
		if is(h) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

func (ps *partitions) numbers() []int { return slices.Sorted(maps.Keys(ps.holdings)) }

// backoff doubles from least to most with the number of tries before.
func backoff(tries int, least, most time.Duration) time.Duration {
	return max(time.Millisecond, min(most, least<<min(tries, 16)))
}

// earlier returns the earlier time; a zero time stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
