package worker

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// never is a time by monotime.
const never = math.MaxInt64

// How long delayed events that cannot be moved wait for the next try.
const firstMovePause, lastMovePause = 40 * time.Millisecond, 500 * time.Millisecond

// mover moves delayed events into the partitions that this worker owns once they
// are due. It sleeps until the next one is. What is due it asks the server, by
// whose clock that is decided:
//
//   - when a partition is gained,
//   - when the first event of a queue is due, as it was told before,
//   - when a control message says that there is an earlier one,
//   - when a refresh finds an earlier one, for the message may have been lost.
//
// Others may move the same events at the same time, for instance the owner of the
// partition for another processor.
type mover struct {
	w    *Worker
	wake chan struct{}

	mu     sync.Mutex
	queues map[store.DuePlace]*dueQueue
}

// A dueQueue is what the mover knows of one partition. The mover's mutex guards it.
type dueQueue struct {
	store.DuePlace
	tenures map[*tenure]bool // of that partition, for several processors
	next    int64            // when to ask, by monotime
	asked   bool             // something came up since the request under way was made
	pause   time.Duration    // before the last try, if the one before did not work
	failed  bool             // and that was logged
}

func newMover(w *Worker) *mover {
	return &mover{w: w, wake: make(chan struct{}, 1), queues: map[store.DuePlace]*dueQueue{}}
}

func duePlace(t *tenure) store.DuePlace {
	return store.DuePlace{Stream: t.place.Stream, Partition: t.place.Partition}
}

// add begins to look after a partition that was gained.
func (m *mover) add(t *tenure) {
	at := duePlace(t)
	m.mu.Lock()
	q := m.queues[at]
	if q == nil {
		q = &dueQueue{DuePlace: at, tenures: map[*tenure]bool{}}
		m.queues[at] = q
	}
	q.tenures[t] = true
	q.ask()
	m.mu.Unlock()
	m.nudge()
}

// remove ends that for a tenure that is over.
func (m *mover) remove(t *tenure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q := m.queues[duePlace(t)]; q != nil {
		delete(q.tenures, t)
		if len(q.tenures) == 0 {
			delete(m.queues, q.DuePlace)
		}
	}
}

// earlier tells that an event of a partition is due earlier than was known.
func (m *mover) earlier(at store.DuePlace) {
	m.mu.Lock()
	if q := m.queues[at]; q != nil {
		q.ask()
	}
	m.mu.Unlock()
	m.nudge()
}

// all has every queue asked.
func (m *mover) all() {
	m.mu.Lock()
	for _, q := range m.queues {
		q.ask()
	}
	m.mu.Unlock()
	m.nudge()
}

// heard tells when the first event of a tenure's partition is due, as a refresh
// found it; 0 for none.
func (m *mover) heard(t *tenure, wait time.Duration) {
	if wait == 0 {
		return
	}
	at := monotime.Now() + int64(wait)
	m.mu.Lock()
	q := m.queues[duePlace(t)]
	sooner := q != nil && at < q.next && q.pause == 0
	if sooner {
		q.next, q.asked = at, true
	}
	m.mu.Unlock()
	if sooner {
		m.nudge()
	}
}

func (q *dueQueue) ask() { q.next, q.asked = monotime.Now(), true }

func (m *mover) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run moves events until ctx ends.
func (m *mover) run(ctx context.Context) {
	retry := outage.New(m.w.log, "delayed events", &m.w.count.Errors)
	for ctx.Err() == nil {
		due, next := m.due()
		if len(due) == 0 {
			m.sleep(ctx, next)
			continue
		}
		if err := m.move(ctx, due); err != nil {
			retry.Wait(ctx, err)
		} else {
			retry.Recovered()
		}
	}
}

// due returns the queues to ask, and when the next one is to be asked.
func (m *mover) due() (due []*dueQueue, next int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := monotime.Now()
	next = never
	for _, q := range m.queues {
		if q.next <= now {
			q.asked = false
			due = append(due, q)
		}
		next = min(next, q.next)
	}
	return due, next
}

// sleep waits until a time by monotime, a nudge, or the end of ctx.
func (m *mover) sleep(ctx context.Context, until int64) {
	var elapsed <-chan time.Time
	if until != never {
		timer := time.NewTimer(time.Duration(until - monotime.Now()))
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-m.wake:
	case <-elapsed:
	}
}

// move has the server move what is due in these queues. Its error says that the
// server is out of reach; they are due still.
func (m *mover) move(ctx context.Context, due []*dueQueue) (err error) {
	places := make([]store.DuePlace, len(due))
	for i, q := range due {
		places[i] = q.DuePlace
	}
	for i, r := range m.w.client.Move(ctx, places) {
		if r.Err != nil && redisconn.Unavailable(r.Err) {
			err = r.Err
			continue
		}
		m.settle(due[i], r)
	}
	return err
}

// settle notes what became of a queue.
func (m *mover) settle(q *dueQueue, r store.Moved) {
	m.w.count.Moved.Add(r.Events)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := monotime.Now()
	switch {
	case r.Err != nil || r.Full != nil:
		q.pause = min(max(2*q.pause, firstMovePause), lastMovePause)
		q.next = now + int64(q.pause/2+rand.N(q.pause/2))
		m.tell(q, r)
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
		m.log(q).Info("recovered", "op", "delayed events")
	}
}

// tell logs, once, that what is due cannot be moved.
func (m *mover) tell(q *dueQueue, r store.Moved) {
	if q.failed {
		return
	}
	q.failed = true
	if r.Err != nil {
		m.log(q).Error("delayed events that are due are not moved, trying again until it works", "err", r.Err)
		return
	}
	m.log(q).Warn("delayed events that are due wait until there is room", "err", r.Full)
}

func (m *mover) log(q *dueQueue) *slog.Logger {
	return m.w.log.With("stream", q.Stream, "partition", q.Partition)
}
