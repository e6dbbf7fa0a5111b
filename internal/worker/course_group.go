package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// consumerName is the only consumer of our group.
	consumerName = "runnel"
	// acksPerCommand bounds one XACK.
	acksPerCommand = 1024
)

// byGroup is the course by consumer group: Redis keeps what it has delivered and what is not acked. So a
// read takes entries, and one of unknown outcome has to be settled.
type byGroup struct{ m *member }

func (c byGroup) read(ctx context.Context, r *reader, set []*partition, logs []string, count int, wait time.Duration) ([]redisconn.Chunk, error) {
	chunks, err := r.conn.Read(ctx, c.m.group, consumerName, logs, count, wait)
	made := r.conn.Connections()
	for _, p := range set {
		r.readsOver(p, made)
	}
	return chunks, err
}

// readHistory reads entries that the server delivered and the buffer does not hold. Until then
// the partition gets no new entries, which would pass the old ones.
func (r *reader) readHistory(ctx context.Context, p *partition, count int) error {
	entries, err := r.conn.History(ctx, r.f.x.group, consumerName, p.keys.Log, p.buffer.Last(), count)
	if err != nil {
		return r.failed(ctx, []*partition{p}, err)
	}
	p.buffer.SetBehind(len(entries) >= count)
	r.f.learn(p.receive(entries), len(entries) >= count) // behind again if not all fit
	r.finish()
	return nil
}

// unsettled settles a read. Otherwise an entry may be lost to this ownership:
//
//  1. the read is sent, the connection breaks, or the server is frozen;
//  2. a new connection reads on and gets entry 2;
//  3. the server executes the old read: entry 1 is pending, and no reader holds it.
//
// So unsettled first ends the old connection on the server: its read either was executed or never
// will be. Then the history is read from the last entry held; then new entries again.
func (c byGroup) unsettled(ctx context.Context, r *reader, set []*partition) {
	for _, p := range set {
		p.buffer.SetBehind(true)
	}
	retry := r.settling
	for ctx.Err() == nil {
		err := within(ctx, r.conn.Kill)
		switch {
		case err == nil:
			retry.Recovered()
			return
		case errors.Is(err, redisconn.ErrCannotKill):
			// Another executor ID has other groups, which the old read cannot reach. Until
			// then these partitions get no more entries, which might be out of order.
			for _, p := range set {
				p.beginEnd()
			}
			r.f.x.surprise(err)
			return
		case r.f.x.ctx.Err() != nil && (allLost(set) || r.blind()):
			for _, p := range set {
				r.f.x.releases.lose(p, errNotReading)
			}
			return // no reader uses this executor ID any more
		}
		r.unanswered(ctx, err)
		retry.Wait(ctx, err)
	}
}

func allLost(set []*partition) bool {
	return !slices.ContainsFunc(set, func(p *partition) bool { return !p.life.isLost() })
}

// atOnce is all: an XACK takes microseconds.
func (byGroup) atOnce(n int) int { return n }

// confirm sends one XACK for each partition.
func (c byGroup) confirm(ctx context.Context, work []*partition) (of []*partition, errs []error) {
	var acks []store.Ack
	for _, p := range work {
		if ids, removed := p.buffer.TakeAcks(acksPerCommand, ""); len(ids) > 0 {
			p.processed.flush() // again: these may be the last events
			acks, of = append(acks, store.Ack{Place: p.keys, IDs: ids, Gone: removed}), append(of, p)
		}
	}
	if len(acks) == 0 {
		return nil, nil
	}
	return of, c.m.w.client.Ack(ctx, c.m.group, acks)
}
