package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/prefetch"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// The scripts of a pipeline are executed in a row, while all others wait: a round of commits has pipelines of commitsAtOnce,
// but no more than mostTrips, which would take long where the server is far away.
const commitsAtOnce, mostTrips = 8, 16

// largeEntry is the size in bytes from which on entries are not read by the script of each commit.
const largeEntry = 16 << 10

// byPosition is the course by position: Redis keeps one position for each partition, up to which all is done. A read
// has no effect, so one that fails is made again. What refuses a former owner is the fence of its commits.
type byPosition struct{ m *member }

func (c byPosition) read(ctx context.Context, r *reader, set []*partition, logs []string, count int, wait time.Duration) ([]redisconn.Chunk, error) {
	c.countLost(ctx, set)
	for {
		made, err := c.readOn(ctx, r, set)
		var keys, after []string
		for i, p := range set {
			if p.connections == made && made > 0 {
				keys, after = append(keys, logs[i]), append(after, p.buffer.Last())
			}
		}
		if err != nil {
			wait = 0 // for those that can be read
		}
		var chunks []redisconn.Chunk
		if len(keys) > 0 {
			var failed error
			chunks, failed = r.conn.Follow(ctx, keys, after, count, wait)
			err = errors.Join(err, failed)
		}
		switch {
		case r.conn.Connections() == made:
			return chunks, err
		case err != nil:
			return nil, err
		}
		// They may be those of a server that has gone back, and are read again.
	}
}

// countLost counts what was removed before it was read, where a refresh has found that there may be some. Only here no read
// is under way that brings what was removed since. What it finds comes with the next refresh, as does what it fails to do.
func (c byPosition) countLost(ctx context.Context, set []*partition) {
	var rs []store.LeaseRequest
	for _, p := range set {
		if p.beat.gaps.suspect.Load() && p.beat.gaps.suspect.Swap(false) && !p.life.isLost() {
			one := p.leaseRequest()
			one.At, one.Count = p.buffer.Delivered()
			rs = append(rs, one)
		}
	}
	if len(rs) == 0 {
		return
	}
	if err := c.m.w.client.CountLost(ctx, c.m.p.Lease, rs); err != nil {
		c.m.log.Debug("lost events not counted yet", "err", err)
	}
}

// readOn makes sure that the servers that a reader is connected to are where it has come. If one of them is not, as
// after a failover to a replica that was behind, entries may have come before those that were read: the partition
// is taken over again, from the position that the server has. It returns the number of connections that it looked over;
// partitions with that number may be read. An error is about others.
func (c byPosition) readOn(ctx context.Context, r *reader, set []*partition) (made int64, err error) {
	for {
		made = r.conn.Connections()
		var doubted []*partition
		var places []store.Place
		for _, p := range set {
			if (made == 0 || p.connections != made) && !p.life.isLost() {
				last, count := p.buffer.Delivered()
				doubted, places = append(doubted, p), append(places, store.Place{Partition: p.keys, Claim: p.claim, Last: last, Count: count})
			}
		}
		if len(doubted) == 0 {
			return made, nil
		}
		found, errs := c.m.w.client.Continue(ctx, r.conn, places)
		failed := errors.Join(errs...)
		if failed == nil {
			r.answered(true) // also if each read breaks off before anything comes
		}
		if r.conn.Connections() != made && failed == nil {
			continue // some of it was said by others than those that will be read
		}
		var bad []*partition
		for i, p := range doubted {
			switch {
			case errs[i] != nil || r.conn.Connections() != made:
			case found[i]:
				r.readsOver(p, made)
			default:
				bad = append(bad, p)
			}
		}
		return made, errors.Join(append(errs, c.doubt(ctx, bad))...)
	}
}

// errNotThere is why a partition is taken over again that cannot be read on.
var errNotThere = errors.New("the server does not have what was read of it")

// doubt ends ownerships that cannot be read on: what of them is lost, or goes on anew.
func (c byPosition) doubt(ctx context.Context, bad []*partition) error {
	for _, p := range bad {
		switch err := c.m.releases.probe(ctx, []*partition{p}, errNotThere); {
		case errors.Is(err, errNotThere):
			c.m.releases.behind(p, err)
		case err != nil:
			return err
		}
	}
	return nil
}

func (byPosition) unsettled(context.Context, *reader, []*partition) {}

func (c byPosition) atOnce(n int) int { return max(commitsAtOnce, (n+mostTrips-1)/mostTrips) }

// confirm sends a commit for each partition.
func (c byPosition) confirm(ctx context.Context, work []*partition) (of []*partition, errs []error) {
	var commits []store.Commit
	large := c.m.fetch.sizes.largest(monotime.Now()) > largeEntry
	for _, p := range work {
		if one, ok := p.nextCommit(large); ok {
			p.processed.flush() // again: these may be the last events
			commits, of = append(commits, one), append(of, p)
		}
	}
	if len(commits) == 0 {
		return nil, nil
	}
	errs = c.m.w.client.Commit(ctx, commits)
	for i, p := range of {
		p.staging.answered(errs[i])
		switch err := errs[i]; {
		case err == nil:
			p.commits++
			c.m.count.Commits.Add(1)
			p.outbox.stored(commits[i])
		case p.staging != nil && refused(err):
			c.m.hold(p, err)
			errs[i] = errHeld
		case errors.Is(err, store.ErrBehind):
			c.m.releases.behind(p, err)
		}
	}
	return of, errs
}

// nextCommit returns the next commit of a partition, if there is something to commit.
func (p *partition) nextCommit(large bool) (one store.Commit, ok bool) {
	s := p.staging
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held || s.closed || s.sent { // a partition may be marked twice
			return one, false
		}
		defer func() { s.sent = ok }()
	}
	ids, takenOut := p.buffer.TakeAcks(math.MaxInt, s.bound())
	switch {
	case s != nil && s.flight != nil:
		return *s.flight, true
	case len(ids) == 0 && (s == nil || len(s.queue) == 0 || s.queue[0].upTo != ""):
		return one, false
	}
	committed, read := p.buffer.Checkpoint()
	one = store.Commit{Partition: p.keys, Claim: p.claim, Number: p.commits + 1, Committed: committed, Read: read, TakenOut: takenOut, Large: large}
	if n := len(ids); n > 0 {
		one.Committed = ids[n-1]
		if read >= 0 {
			one.Read = read + int64(n)
		}
	}
	if s != nil {
		s.takeWith(&one)
		p.outbox.number(&one)
	}
	return one, true
}

// renewed finds out whether Redis has forgotten commits: without further events no other commit would tell.
func (c byPosition) renewed(_ context.Context, p *partition, sent store.LeaseRequest, _ prefetch.Owed, r store.LeaseResult) error {
	if stored := cmp.Or(r.Stored, "0-0"); entryid.Compare(stored, sent.Committed) < 0 {
		c.m.releases.behind(p, fmt.Errorf("the server has the position %s, not %s", stored, sent.Committed))
	}
	return nil
}

// reachFor waits until Redis knows that so many events may be begun at once, if that is more than ever.
func (p *partition) reachFor(n int) {
	want := reachOf(int64(n))
	if p.claim.Reach == 0 || want <= p.reach.known.Load() {
		return
	}
	p.reach.wanted.Store(max(want, p.reach.wanted.Load()))
	for p.reach.known.Load() < want && !p.life.isEnding() {
		p.changed()
		doze(p.buffer.Ready(), p.leaseLength())
	}
}

// reaches notes how many events may be begun, as Redis knows it.
func (p *partition) reaches(reach int64) {
	if reach > p.reach.known.Load() {
		p.reach.known.Store(reach)
		p.buffer.Signal()
	}
}

// reachOf returns how many entries behind the committed position an owner may begin at most, that has so many done
// and not committed: those, and as many of an iteration.
func reachOf(most int64) int64 { return 2 * most }
