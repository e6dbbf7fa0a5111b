package worker

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// never is a time by monotime.
const never = math.MaxInt64

// How long delayed events that cannot be moved wait for the next try.
const firstMovePause, lastMovePause = 40 * time.Millisecond, 500 * time.Millisecond

// A forwarder moves delayed events that are due into the partitions that this worker owns. It
// sleeps until the next one is due. The server decides by its clock what is due, and the
// forwarder asks it:
//
//   - when a partition is gained,
//   - when the first event of a queue is due, as an answer said before,
//   - when a control message announces an earlier one,
//   - when a refresh finds an earlier one, since the message may be lost.
//
// Others may move the same events at the same time, for instance the owner of the
// partition for another processor.
type forwarder struct {
	w    *Worker
	wake signal

	mu     sync.Mutex
	queues map[store.StreamPartition]*dueQueue
}

// A dueQueue is what the forwarder knows of one partition. The forwarder's mutex guards it.
type dueQueue struct {
	store.StreamPartition
	partitions map[*partition]bool // of that partition, for several processors
	next       int64               // when to ask, by monotime
	asked      bool                // something came up since the request under way was made
	pause      time.Duration       // before the last try, if the one before did not work
	failed     bool                // and that was logged
}

func newForwarder(w *Worker) *forwarder {
	return &forwarder{w: w, wake: newSignal(), queues: map[store.StreamPartition]*dueQueue{}}
}

func duePlace(p *partition) store.StreamPartition {
	return store.StreamPartition{Stream: p.keys.Stream, Partition: p.keys.Number}
}

// add begins to move the delayed events of a partition that was gained.
func (f *forwarder) add(p *partition) {
	at := duePlace(p)
	f.mu.Lock()
	q := f.queues[at]
	if q == nil {
		q = &dueQueue{StreamPartition: at, partitions: map[*partition]bool{}}
		f.queues[at] = q
	}
	q.partitions[p] = true
	q.ask()
	f.mu.Unlock()
	f.wake.set()
}

// remove ends what add began.
func (f *forwarder) remove(p *partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.queues[duePlace(p)]; q != nil {
		delete(q.partitions, p)
		if len(q.partitions) == 0 {
			delete(f.queues, q.StreamPartition)
		}
	}
}

// earlier notes that an event of a partition is due earlier than known.
func (f *forwarder) earlier(at store.StreamPartition) {
	f.mu.Lock()
	if q := f.queues[at]; q != nil {
		q.ask()
	}
	f.mu.Unlock()
	f.wake.set()
}

func (f *forwarder) all() {
	f.mu.Lock()
	for _, q := range f.queues {
		q.ask()
	}
	f.mu.Unlock()
	f.wake.set()
}

// sawDue stores the time until a partition's first event is due, as a refresh found it; 0 for none.
func (f *forwarder) sawDue(p *partition, wait time.Duration) {
	if wait == 0 {
		return
	}
	at := monotime.Now() + int64(wait)
	f.mu.Lock()
	q := f.queues[duePlace(p)]
	sooner := q != nil && at < q.next && q.pause == 0
	if sooner {
		q.next, q.asked = at, true
	}
	f.mu.Unlock()
	if sooner {
		f.wake.set()
	}
}

func (q *dueQueue) ask() { q.next, q.asked = monotime.Now(), true }

// run moves events until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	retry := outage.New(f.w.log, "delayed events", &f.w.count.Errors)
	for ctx.Err() == nil {
		due, next := f.due()
		if len(due) == 0 {
			f.sleep(ctx, next)
			continue
		}
		if err := f.move(ctx, due); err != nil {
			retry.Wait(ctx, err)
		} else {
			retry.Recovered()
		}
	}
}

// due returns the queues to ask now, and the time of the next one.
func (f *forwarder) due() (due []*dueQueue, next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := monotime.Now()
	next = never
	for _, q := range f.queues {
		if q.next <= now {
			q.asked = false
			due = append(due, q)
		}
		next = min(next, q.next)
	}
	return due, next
}

// sleep waits until a time by monotime, a signal, or the end of ctx.
func (f *forwarder) sleep(ctx context.Context, until int64) {
	var elapsed <-chan time.Time
	if until != never {
		timer := time.NewTimer(time.Duration(until - monotime.Now()))
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-f.wake:
	case <-elapsed:
	}
}

// move makes the server move the due events of these queues. After an error the queues are still
// due.
func (f *forwarder) move(ctx context.Context, due []*dueQueue) (err error) {
	places := make([]store.StreamPartition, len(due))
	for i, q := range due {
		places[i] = q.StreamPartition
	}
	for i, r := range f.w.client.Move(ctx, places) {
		if r.Err != nil && redisconn.Unavailable(r.Err) {
			err = r.Err
			continue
		}
		f.settle(due[i], r)
	}
	return err
}

// settle stores the outcome for a queue.
func (f *forwarder) settle(q *dueQueue, r store.Moved) {
	f.w.count.Moved.Add(r.Events)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := monotime.Now()
	switch {
	case r.Err != nil || r.Full != nil:
		q.pause = min(max(2*q.pause, firstMovePause), lastMovePause)
		q.next = now + int64(q.pause/2+rand.N(q.pause/2))
		f.report(q, r)
		return
	case q.asked:
		q.next = now
	case r.Wait < 0:
		q.next = never
	default:
		q.next = now + int64(r.Wait)
	}
	q.pause = 0
	if q.failed {
		q.failed = false
		f.log(q).Info("recovered", "op", "delayed events")
	}
}

// report logs, once, that due events cannot be moved.
func (f *forwarder) report(q *dueQueue, r store.Moved) {
	if q.failed {
		return
	}
	q.failed = true
	if r.Err != nil {
		f.log(q).Error("redis error, retrying", "op", "delayed events", "err", r.Err, "help", help.DelayedEvents)
		return
	}
	f.log(q).Warn("delayed events wait for room", "err", r.Full, "help", help.StreamFull)
}

func (f *forwarder) log(q *dueQueue) *slog.Logger {
	return f.w.log.With("stream", q.Stream, "partition", q.Partition)
}
