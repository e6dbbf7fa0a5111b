package worker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/retryqueue"
	"github.com/runnel-go/runnel/internal/rows"
	"github.com/runnel-go/runnel/internal/store"
)

// Bounds of a commit of several iterations, and of what may wait in memory to be committed.
const (
	changesPerCommit = 512
	bytesPerCommit   = 256 << 10
	mostStaged       = 8 << 20
)

// staging is what an atomic processor has done with a partition and not committed. The consumer adds to it what an
// iteration has changed together with its acks, and the acker takes it together with them: so no commit has one
// without the other.
type staging struct {
	rows     *rows.Partition
	suspect  string         // that the owner before was at, "" for none
	refusals *outage.Outage // of commits; of the acker, and while one is held of what waits

	mu     sync.Mutex
	queue  []staged      // oldest first; the last one is added to
	flight *store.Commit // it was sent, and is sent again as it is until its outcome is known
	sent   bool          // and its round trip has not ended; see free
	with   staged        // what flight has
	bytes  int64         // of queue and flight
	held   bool          // flight was refused, and waits
	closed bool          // no more is sent
}

// staged is what one commit will have.
type staged struct {
	changes *store.Changes    // nil: acks alone
	upTo    string            // the last entry of its iterations, "" for none
	waits   *store.RetryState // of that, while it is held
	taken   int64             // the number of its last changes; see rows.Partition
	items   int
	bytes   int64

	together int // so many items may be in it, those of its first iteration in any case; 0 for the end of a parked event, which is waited for
}

// done adds what the iteration that ends has changed. last is the last of its entries, "" for none; ack moves them to the acker.
func (s *staging) done(last string, ack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if items, bytes, together := s.rows.Pending(); items > 0 {
		n := len(s.queue)
		if n == 0 || !s.queue[n-1].takes(items, bytes, together) {
			s.queue, n = append(s.queue, staged{changes: &store.Changes{}, together: changesPerCommit}), n+1
		}
		s.queue[n-1].take(s, cmp.Or(last, s.queue[n-1].upTo), items, bytes)
		s.queue[n-1].together = min(together, s.queue[n-1].together)
	} else {
		s.rows.Drop()
	}
	ack()
}

// parked adds what the attempt of a parked event has changed, and its end.
func (s *staging) parked(id string, waits *store.RetryState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := staged{changes: &store.Changes{Settled: []string{id}}, waits: waits}
	items, bytes, _ := s.rows.Pending()
	one.take(s, "", items, bytes)
	s.queue = append(s.queue, one)
}

func (one *staged) takes(items int, bytes int64, together int) bool {
	return one.items+items <= min(together, one.together) && one.bytes+bytes <= bytesPerCommit
}

func (one *staged) take(s *staging, upTo string, items int, bytes int64) {
	s.rows.Take(one.changes)
	one.upTo, one.taken = upTo, s.rows.Taken()
	one.items, one.bytes = one.items+items, one.bytes+bytes
	s.bytes += bytes
}

// bound returns the entry up to which the next commit may ack, "" for no bound. It is called under the mutex.
func (s *staging) bound() string {
	switch {
	case s == nil:
		return ""
	case s.flight != nil:
		return "0-0" // it takes no others along
	case len(s.queue) < 2:
		return ""
	}
	return cmp.Or(s.queue[0].upTo, "0-0") // a parked event passes none, nor do rows that end
}

// takeWith moves what a commit up to an entry has to flight. It is called under the mutex.
func (s *staging) takeWith(one *store.Commit) {
	s.with = staged{}
	if len(s.queue) > 0 && (s.queue[0].upTo == "" || entryid.Compare(s.queue[0].upTo, one.Committed) <= 0) {
		s.with, s.queue = s.queue[0], s.queue[1:]
		one.Changes = s.with.changes
	}
	s.flight = one
}

// answered ends a round trip of the commit under way: it is stored, or with an error to be sent again.
func (s *staging) answered(err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return
	}
	s.refusals.Recovered()
	if s.with.changes != nil {
		s.with.changes.Stored()
		for i, t := range s.with.changes.Tables {
			s.rows.Tables[i].Config.Budget.Written.Add(int64(len(t.Rows)))
		}
		s.rows.Confirmed(s.with.taken)
	}
	s.bytes -= s.with.bytes
	s.flight, s.with = nil, staged{}
}

// free ends a round trip, behind AcksConfirmed or AcksFailed: in a cluster a partition whose slot has moved may be marked at the
// ackers of two nodes, and what one of them numbers begins where the other one has ended.
func (s *staging) free() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.sent = false
	s.mu.Unlock()
}

// waits reports whether there is something to commit.
func (s *staging) waits() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flight != nil || len(s.queue) > 0
}

// full reports whether so much is not committed that no other iteration may begin.
func (s *staging) full() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes > mostStaged
}

// stuck reports whether the commit was refused, and waits or will not be sent again.
func (s *staging) stuck() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held || s.closed
}

// close keeps all that is not committed from being sent: another owner does it again. It reports false while a commit
// is under way.
func (s *staging) close() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.held || s.flight == nil
	return s.closed
}

// refused reports whether an error of a commit is about what it writes: it was not done, and may be done later.
func refused(err error) bool {
	return errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrNoPartition) || errors.Is(err, redisconn.ErrWrongType) || redisconn.Denied(err) || redisconn.ReplyHas(err, "OOM ")
}

// errHeld is the error of a refused commit, which its partition alone waits for.
var errHeld = errors.New("held back")

// hold keeps a refused commit of a partition, and others behind it, for a while: until there is room, where that was why.
func (m *member) hold(p *partition, why error) {
	s := p.staging
	s.mu.Lock()
	s.held = true
	done, waits := s.flight.Committed, s.with.waits
	for _, one := range s.queue { // behind it
		done, waits = cmp.Or(one.upTo, done), cmp.Or(waits, one.waits)
	}
	s.mu.Unlock()
	p.buffer.Signal()
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.ctx))
	m.wg.Go(func() {
		defer cancel()
		select {
		case <-p.life.gone:
		case <-p.life.ended:
		case <-ctx.Done():
		}
	})
	m.wg.Go(func() {
		defer cancel()
		p.source.parked.survived(s.suspect, done, waits)
		if full := (*store.TargetFullError)(nil); errors.As(why, &full) {
			m.w.client.AwaitRoom(ctx, full, func(err error) { s.refusals.Failed(ctx, err) })
		} else {
			s.refusals.Wait(ctx, why)
		}
		s.mu.Lock()
		s.held = false
		s.mu.Unlock()
		m.acks.mark(p)
	})
}

// rowSource reads rows for an ownership, until they can be read or it ends.
type rowSource struct{ p *redisStore }

// Rows returns rows.
func (s rowSource) Rows(t store.Table, keys []string) (found []store.Row, err error) {
	err = s.p.persistAs("rows", func(ctx context.Context) (err error) {
		found, err = unlessOver(ctx, func() ([]store.Row, error) { return s.p.i.w.client.Rows(ctx, t, keys) })
		return err
	})
	return found, err
}

// Ends returns when rows end, once all is committed that was done.
func (s rowSource) Ends(t store.Table, most int64) (found []store.End, err error) {
	if !s.p.t.flush() {
		return nil, io.EOF
	}
	err = s.p.persistAs("rows", func(ctx context.Context) (err error) {
		found, err = unlessOver(ctx, func() ([]store.End, error) { return s.p.i.w.client.Ends(ctx, t, most) })
		return err
	})
	return found, err
}

// Page returns a page of rows.
func (s rowSource) Page(t store.Table, cursor store.Cursor) (page []store.KeyedRow, next store.Cursor, err error) {
	err = s.p.persistAs("rows", func(ctx context.Context) error {
		page, next, err = s.p.i.w.client.Page(ctx, t, cursor)
		return err
	})
	return page, next, err
}

// prepare makes the staging of an ownership, if the processor is atomic.
func (p *partition) prepare(m *member, pos store.Takeover) {
	if !m.p.Atomic {
		return
	}
	p.staging = &staging{suspect: pos.Suspect, rows: &rows.Partition{Skip: pos.SkipEnd, Suspect: pos.Crashed}, refusals: outage.New(p.log, "commit", &m.count.Errors)}
	p.staging.rows.From(pos.Committed)
	p.staging.rows.At(pos.Time)
	for _, t := range m.p.Tables {
		t.Place = m.w.client.Table(m.p.Stream, t.Name, p.keys.Number)
		t.Place.Lasting = !t.Ends
		t.Source = rowSource{p.source.parked}
		p.staging.rows.Add(t)
	}
}

// forget gives the memory of the rows back, once the function has ended.
func (s *staging) forget() {
	if s == nil {
		return
	}
	for _, t := range s.rows.Tables {
		t.Close()
	}
}

// loadsAtOnce is for how many partitions of a worker rows are loaded at once, so that the server serves others meanwhile.
const loadsAtOnce = 2

// load brings the rows of a partition into memory, while its events are processed.
func (m *member) load(p *partition) {
	select {
	case m.w.loads <- struct{}{}:
		defer func() { <-m.w.loads }()
	case <-p.ctx.Done():
		return
	}
	for _, t := range p.staging.rows.Tables {
		if err := t.Load(p.ctx); err != nil {
			return // the ownership has ended
		}
	}
}

// settleFirst waits until all before is committed, where a partition's events leave it for other places: so what was
// done before is stored before, as all of it is repeated else. It reports false if the ownership ended.
func (p *partition) settleFirst() bool { return p.staging == nil || p.flush() }

// commitParked commits what an attempt of a parked event has changed, together with its end.
func (p *partition) commitParked(id string, waits *store.RetryState) error {
	p.staging.parked(id, waits)
	p.acks.mark(p)
	if p.staging.stuck() { // behind another one
		p.source.parked.survived("", "", waits)
	}
	switch {
	case p.flush():
		return nil
	case !p.life.isLost() && p.staging.close(): // it was refused, and is not sent again: the attempt was none
		return retryqueue.ErrNotDone
	}
	return io.EOF
}
