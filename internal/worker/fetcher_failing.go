package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

// errNotReading ends a member that can renew its leases but not read: others may be able to
// read its partitions.
var errNotReading = errors.New("not reading: reads have failed for longer than the lease; " + help.NotReading)

// longestPause bounds how long an executor that has never read anything waits to rejoin.
const longestPause = time.Minute

// A sight tracks whether the reads of one reader are answered. A partition that is full, paused
// for long or quarantined is not read, and so has no failing reads.
type sight struct {
	mu       sync.Mutex
	since    int64 // when reads began to fail, by monotime; 0: the last one was answered, or none is wanted
	err      error // the last one
	reported bool  // in heartbeats
	worked   bool  // a read was answered, ever
}

// clear notes that the last read was answered, or that there is none to make. It reports whether
// heartbeats report failing reads.
func (s *sight) clear(answered bool) (reported bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worked = s.worked || answered
	reported = s.reported
	s.since, s.err, s.reported = 0, nil, false
	return reported
}

// fails notes a read that failed or cannot be tried, and returns the time since the first of
// them in a row.
func (s *sight) fails(err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := monotime.Now()
	if s.since == 0 {
		s.since = now
	}
	s.err = err
	return time.Duration(now - s.since)
}

// report reports, once, whether heartbeats should report that reads have failed for a while.
func (s *sight) report() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	reported := s.reported
	s.reported = s.since != 0
	return s.reported && !reported
}

// state returns since when reads fail, by monotime, 0 if they do not; the last error; and
// whether heartbeats report it.
func (s *sight) state() (since int64, err error, reported bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.err, s.reported
}

// answered notes that a read came back with its entries, or that there is none to make.
func (r *reader) answered(read bool) {
	if r.sight.clear(read) {
		r.f.x.heartbeat.soon()
	}
}

// unanswered notes a read that failed. Once all reads have failed for longer than a lease the
// member ends: others get its partitions, and the executor rejoins when it can read. If no
// worker reaches the server, the leases end first; here refreshes worked meanwhile.
func (r *reader) unanswered(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	m := r.f.x
	switch lease, took := time.Duration(leaseDeadline(0, m.p.Lease)), r.sight.fails(err); {
	case took > lease:
		m.surprise(fmt.Errorf("%w: %w", errNotReading, err))
	case took > lease/4 && r.sight.report():
		m.heartbeat.soon()
	}
}

func (r *reader) blind() bool {
	since, _, _ := r.sight.state()
	return since != 0 && monotime.Now() > leaseDeadline(since, r.f.x.p.Lease)
}

// notReading returns the partitions whose reads fail, since when by monotime, and one of the
// errors.
func (f *fetcher) notReading() (since map[int]int64, err error) {
	for _, r := range f.readers {
		at, why, reported := r.sight.state()
		if !reported {
			continue
		}
		err = why
		r.mu.Lock()
		for _, p := range r.partitions {
			if since == nil {
				since = map[int]int64{}
			}
			since[p.keys.Number] = at
		}
		r.mu.Unlock()
	}
	return since, err
}

func (m *member) notReading() error {
	since, err := m.fetch.notReading()
	if len(since) == 0 {
		return nil
	}
	return fmt.Errorf("not reading partitions %s: %w; %s", rebalance.Ranges(slices.Sorted(maps.Keys(since))), err, help.NotReading)
}

// open connects the readers before the member joins, since a member that cannot read should own
// nothing. It retries while ctx lives. If some of the connections work, it gives up the others
// after a lease.
func (m *member) open(ctx context.Context) {
	retry := outage.New(m.log, "connections for reads", &m.count.Errors)
	defer m.setBlind(nil)
	for began := monotime.Now(); ; {
		works, err := m.fetch.try(ctx)
		if err == nil || ctx.Err() != nil {
			retry.Recovered()
			return
		}
		if len(works) > 0 && monotime.Now() > leaseDeadline(began, m.p.Lease) {
			m.log.Warn("reading over fewer connections", "connections", fmt.Sprintf("%d of %d", len(works), len(m.fetch.homes())), "err", err, "help", help.NotReading)
			m.fetch.keep(works)
			return
		}
		m.setBlind(err)
		retry.Wait(ctx, err)
	}
}

// try makes each reader that is always needed read the control stream.
func (f *fetcher) try(ctx context.Context) (works []*reader, err error) {
	control := f.x.w.client.Keys().Control(f.x.p.Stream, f.x.p.Name)
	for _, r := range f.homes() {
		_, failed := r.conn.Follow(ctx, []string{control}, []string{"$"}, 1, 0)
		if failed == nil || errors.Is(failed, redisconn.ErrWrongType) {
			works = append(works, r)
		} else {
			err = failed
		}
	}
	return works, err
}

func (f *fetcher) close() {
	for _, r := range f.readers {
		r.conn.Close()
	}
}

// keep closes all readers but these, before the first read.
func (f *fetcher) keep(works []*reader) {
	for _, r := range f.readers {
		if !slices.Contains(works, r) {
			r.conn.Close()
		}
	}
	f.readers = works
}

// waitBlind waits, longer each time, before an executor rejoins that never read anything under its
// last ID. Otherwise it would keep taking partitions that it cannot read from executors that can.
func (x *executor) waitBlind(ctx context.Context, m *member) {
	for _, r := range m.fetch.readers {
		if r.sight.worked {
			x.rejoinPause = 0
			return
		}
		if r.sight.err != nil {
			x.setBlind(r.sight.err)
		}
	}
	x.rejoinPause = min(max(2*x.rejoinPause, x.p.Lease), longestPause)
	monotime.Sleep(ctx, x.rejoinPause)
}

// setBlind notes why the executor cannot read, nil if it can.
func (x *executor) setBlind(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.blind = err
}

func (x *executor) blindness() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.blind
}

// within limits a call to a second, so that it does not hold up the end of the services.
func within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return call(ctx)
}
