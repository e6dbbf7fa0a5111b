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

// largeEntry is the size in bytes from which on entries are not read by the script of each commit.
const largeEntry = 16 << 10

// byPosition is the course by position: Redis keeps one position for each partition, up to which all is done. A read
// has no effect, so one that fails is made again. What refuses a former owner is the fence of its commits.
type byPosition struct{ m *member }

func (c byPosition) read(ctx context.Context, r *reader, set []*partition, logs []string, count int, wait time.Duration) ([]redisconn.Chunk, error) {
	after := make([]string, len(set))
	for {
		made, err := c.readOn(ctx, r, set)
		if err != nil {
			return nil, err
		}
		for i, p := range set {
			after[i] = p.buffer.Last()
		}
		chunks, err := r.conn.Follow(ctx, logs, after, count, wait)
		if err != nil || r.conn.Connections() == made {
			return chunks, err
		}
		// They may be those of a server that has gone back, and are read again.
	}
}

// readOn makes sure that the servers that a reader is connected to are where it has come. If one of them is not, as
// after a failover to a replica that was behind, entries may have come before those that were read: the partition
// is taken over again, from the position that the server has. It returns the number of connections that it looked over.
func (c byPosition) readOn(ctx context.Context, r *reader, set []*partition) (made int64, err error) {
	for {
		made = r.conn.Connections()
		var doubted []*partition
		var places []store.Place
		for _, p := range set {
			if made == 0 || p.connections != made {
				doubted, places = append(doubted, p), append(places, store.Place{Partition: p.keys, Claim: p.claim, Last: p.buffer.Last()})
			}
		}
		if len(doubted) == 0 {
			return made, nil
		}
		good, err := c.m.w.client.Continue(ctx, r.conn, places)
		if err != nil {
			return made, err
		}
		r.answered(true) // also if each read breaks off before anything comes
		if r.conn.Connections() != made {
			continue // some of it was said by others than those that will be read
		}
		for i, p := range doubted {
			if p.connections = made; !good[i] {
				c.m.releases.behind(p, errors.New("the server does not have what was read of it"))
			}
		}
		return made, nil
	}
}

func (byPosition) unsettled(context.Context, *reader, []*partition) {}

// confirm sends a commit for each partition.
func (c byPosition) confirm(ctx context.Context, work []*partition) (of []*partition, errs []error) {
	var commits []store.Commit
	large := c.m.fetch.sizes.largest(monotime.Now()) > largeEntry
	for _, p := range work {
		ids, takenOut := p.buffer.TakeAcks(math.MaxInt)
		if len(ids) == 0 {
			continue
		}
		p.processed.flush() // again: these may be the last events
		one := store.Commit{Partition: p.keys, Claim: p.claim, Number: p.commits + 1, Committed: ids[len(ids)-1], Read: -1, TakenOut: takenOut, Large: large}
		one.Claim.Reach = max(one.Claim.Reach, reachOf(p.most.Load()))
		if _, read := p.buffer.Checkpoint(); read >= 0 {
			one.Read = read + int64(len(ids))
		}
		commits, of = append(commits, one), append(of, p)
	}
	if len(commits) == 0 {
		return nil, nil
	}
	errs = c.m.w.client.Commit(ctx, commits)
	for i, p := range of {
		switch err := errs[i]; {
		case err == nil:
			p.commits++
		case errors.Is(err, store.ErrBehind):
			c.m.releases.behind(p, err)
		}
	}
	return of, errs
}

// renewed finds out whether Redis has forgotten commits: without further events no other commit would tell.
func (c byPosition) renewed(_ context.Context, p *partition, sent store.LeaseRequest, _ prefetch.Owed, r store.LeaseResult) error {
	if stored := cmp.Or(r.Stored, "0-0"); entryid.Compare(stored, sent.Committed) < 0 {
		c.m.releases.behind(p, fmt.Errorf("the server has the position %s, not %s", stored, sent.Committed))
	}
	return nil
}

// reachOf returns how many entries behind the committed position an owner may begin at most, that has so many done
// and not committed: those, and as many of an iteration.
func reachOf(most int64) int64 { return 2 * most }
