package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const (
	entriesPerHop  = 64        // of one call
	bytesPerHop    = 256 << 10 // of one call, but for a single larger entry
	hopsPerTrip    = 16        // of one round trip to a node
	entriesPerRead = 128       // and no more than bytesPerHop
	// MostWaiting is the weight of the entries of an outbox that wait in memory, for targets that cannot take them: beyond it
	// nothing is read.
	MostWaiting = 8 << 20

	firstHopPause, lastHopPause = 20 * time.Millisecond, time.Second
)

// A Courier brings what is in a partition's outbox to the partitions that it is for: once, and in order for each of these.
// Several may do so at the same time. One that cannot take what is for it keeps no other waiting, until MostWaiting wait.
//
// What has an unknown outcome is sent again before anything behind it for the same partition, so the last ID that came there
// tells all that came. It is not for concurrent use.
type Courier struct {
	// Failed, unless nil, is told what keeps outputs from a partition, each time that they are tried; nil: they come again.
	Failed func(to StreamPartition, err error)
	// Forgot, unless nil, is told that a partition has lost outputs that had come there: by a failover to a replica that was behind.
	Forgot func(to StreamPartition, had, has string)

	c     Producer
	from  Partition
	read  string // what is up to it is in routes, or has come
	done  string // what is up to it was removed
	more  bool   // there may be some behind read
	count int    // in routes
	load  int64  // the weight of these
	of    map[StreamPartition]*route
	order []*route
}

// A route is what is on the way to one target.
type route struct {
	to      StreamPartition
	entries []outboxEntry
	after   string // all up to it has come, "" for unknown
	tried   bool   // what is not known to have come may have
	next    int64  // when it is tried again, by monotime, if there is a pause
	pause   time.Duration
	sent    int           // entries of the last call
	took    time.Duration // its round trip
}

// NewCourier returns a courier that begins with all that a partition's outbox has.
func (c *Client) NewCourier(from Partition) *Courier {
	return &Courier{c: c.Producer, from: from, read: "0-0", more: true, of: map[StreamPartition]*route{}}
}

// Carries returns how many entries it has read that have not come.
func (c *Courier) Carries() int { return c.count }

// Behind reports whether so many wait that no more are read.
func (c *Courier) Behind() bool { return c.load >= MostWaiting }

// ReadAll reports whether Round has read all that there was since Look.
func (c *Courier) ReadAll() bool { return !c.more }

// Look makes the next Round look for entries that were not there.
func (c *Courier) Look() { c.more = true }

// Round sends what waits, removes what has come, and reads on, in at most a few round trips. It returns how many came, and when
// to call it again: -1, once there are more. An error is about the outbox; those of targets go to Failed.
func (c *Courier) Round(ctx context.Context) (came int64, again time.Duration, err error) {
	var ready []*route
	now := monotime.Now()
	for _, r := range c.order {
		if r.wait(now) == 0 {
			ready = append(ready, r)
		}
	}
	came = c.send(ctx, ready)
	c.order = slices.DeleteFunc(c.order, func(r *route) bool { return len(r.entries) == 0 })
	if err := c.goOn(ctx); err != nil {
		return came, 0, err
	}
	return came, c.wait(), nil
}

// wait returns when something can be done.
func (c *Courier) wait() time.Duration {
	if c.more && !c.Behind() {
		return 0
	}
	wait := time.Duration(-1)
	now := monotime.Now()
	for _, r := range c.order {
		if left := r.wait(now); wait < 0 || left < wait {
			wait = left
		}
	}
	return wait
}

// wait returns how long a route waits after a failure.
func (r *route) wait(now int64) time.Duration {
	if r.pause == 0 {
		return 0
	}
	return max(time.Duration(r.next-now), 0)
}

// goOn removes from the outbox what has come, and reads what is behind.
func (c *Courier) goOn(ctx context.Context) error {
	done := c.read
	for _, r := range c.order {
		if first := entryid.Before(r.entries[0].id); entryid.Compare(first, done) < 0 {
			done = first
		}
	}
	count := 0
	if c.more && !c.Behind() {
		count = entriesPerRead
	}
	if done == c.done || done == "0-0" {
		if done = ""; count == 0 {
			return nil
		}
	}
	found, err := c.c.readOutbox(ctx, c.from, done, c.read, count)
	if err != nil {
		return err
	}
	if done != "" {
		c.done = done
	}
	if count == 0 {
		return nil
	}
	c.more = len(found) > 0
	for _, f := range found {
		to, e, err := unbox(f)
		if err != nil {
			return c.from.wrap("outbox", err)
		}
		c.add(to, e)
	}
	return nil
}

func (c *Courier) add(to StreamPartition, e outboxEntry) {
	r := c.of[to]
	if r == nil {
		r = &route{to: to}
		c.of[to] = r
	}
	if len(r.entries) == 0 {
		c.order = append(c.order, r)
	}
	r.entries = append(r.entries, e)
	c.read, c.count, c.load = e.id, c.count+1, c.load+weightOf(e.fields)
}

// A trip is what goes to one node.
type trip struct {
	routes []*route
	calls  []*redisconn.Call
	weak   error
	took   time.Duration
}

// send makes one try for each of some routes, for all nodes at once, and returns how many entries came.
func (c *Courier) send(ctx context.Context, routes []*route) (came int64) {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	var wg sync.WaitGroup
	trips := c.trips(ctx, routes)
	for _, t := range trips {
		wg.Go(func() {
			began := monotime.Now()
			t.weak = c.c.Durably(ctx, t.calls)
			t.took = time.Duration(monotime.Now() - began)
		})
	}
	wg.Wait()
	for _, t := range trips {
		for i, r := range t.routes {
			r.took = t.took
			came += c.settle(ctx, r, t.calls[i], t.weak)
		}
	}
	return came
}

// trips returns calls for some routes, by node.
func (c *Courier) trips(ctx context.Context, routes []*route) (all []*trip) {
	open := map[string]*trip{}
	for _, r := range routes {
		most, err := MetaStore(c.c).mostOf(ctx, c.from.Stream, r.to)
		if err != nil {
			c.failed(r, err)
			continue
		}
		node := c.c.NodeOf(c.c.keys.Partition(r.to.Stream, r.to.Partition))
		t := open[node]
		if t == nil || len(t.calls) == hopsPerTrip {
			t = &trip{}
			open[node], all = t, append(all, t)
		}
		r.sent = r.part()
		t.routes, t.calls = append(t.routes, r), append(t.calls, c.c.hopCall(ctx, c.from, r.to, r.after, most, r.entries[:r.sent]))
	}
	return all
}

// settle ends a try, and returns how many entries came.
func (c *Courier) settle(ctx context.Context, r *route, call *redisconn.Call, weak error) (came int64) {
	last, came, err := hopReply(call)
	switch {
	case err != nil:
		r.tried = true
		c.failed(r, c.refused(ctx, r, err))
	case weak != nil: // they came, and may be lost again
		came, r.tried = 0, true
		c.failed(r, weak)
	case r.after != "" && entryid.Compare(last, r.after) < 0:
		if c.Forgot != nil {
			c.Forgot(r.to, r.after, last)
		}
		r.after = last
	default:
		tried := r.tried
		if n := c.came(r, last); tried { // also by a call whose reply was lost
			came = n
		}
	}
	return came
}

// part returns how many entries a call has.
func (r *route) part() int {
	n, size := 0, 0
	for n < min(len(r.entries), entriesPerHop) {
		for _, f := range r.entries[n].fields {
			size += len(f)
		}
		if n > 0 && size > bytesPerHop {
			break
		}
		n++
	}
	return n
}

// came notes that all up to an ID has come, and returns how many these are.
func (c *Courier) came(r *route, last string) int64 {
	n := 0
	for n < len(r.entries) && entryid.Compare(r.entries[n].id, last) <= 0 {
		c.load -= weightOf(r.entries[n].fields)
		n++
	}
	clear(r.entries[:n])
	r.entries, c.count = r.entries[n:], c.count-n
	r.after, r.tried = last, false
	if r.pause > 0 && c.Failed != nil {
		c.Failed(r.to, nil)
	}
	r.pause = 0
	return int64(n)
}

// refused makes room for what was refused, if that was why. It returns why it has to wait, nil if it need not.
func (c *Courier) refused(ctx context.Context, r *route, err error) error {
	if err == nil || !redisconn.ReplyHas(err, "FULL ") {
		return err
	}
	p := &part{Append: &Append{Stream: r.to.Stream, Partition: r.to.Partition}, log: c.c.keys.Partition(r.to.Stream, r.to.Partition), need: r.sent}
	err = c.c.tryRoom(ctx, p)
	if full := (*FullError)(nil); errors.As(err, &full) && full.Length < full.Size {
		return nil // for some of them
	}
	return err
}

// failed has a route wait for a while, longer each time, unless there is no error.
func (c *Courier) failed(r *route, err error) {
	if err == nil {
		return
	}
	r.pause = min(max(2*r.pause, firstHopPause), lastHopPause)
	// A node that does not answer is tried a fifth of the time, since others wait for the end of each round.
	r.next = monotime.Now() + int64(r.pause/2+rand.N(r.pause/2)+4*r.took)
	if c.Failed != nil {
		c.Failed(r.to, fmt.Errorf("outputs to partition %d of stream %s: %w", r.to.Partition, r.to.Stream, err))
	}
}
