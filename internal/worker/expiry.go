package worker

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/outage"
	"github.com/runnel-go/runnel/internal/store"
)

// expiryEvery is how often rows are removed that have ended in partitions which get no events, and how long they have
// ended by then.
const expiryEvery = time.Minute

// expire removes rows that have ended and that no function is called for, where there is no commit to do so, until ctx ends. Functions do not see them either
// way: by the time of the next event they have ended.
func (m *member) expire(ctx context.Context) {
	retry := outage.New(m.log, "rows", &m.count.Errors)
	for monotime.Sleep(ctx, expiryEvery) {
		for work := m.ending(); len(work) > 0; {
			more, err := m.w.client.ExpireRows(ctx, work, expiryEvery)
			if err != nil {
				retry.Failed(ctx, err)
			} else {
				retry.Recovered()
			}
			left := work[:0]
			for i, e := range work {
				if more[i] {
					left = append(left, e)
				}
			}
			work = left
		}
	}
}

// ending returns the partitions with tables whose rows may end.
func (m *member) ending() (work []store.Expiry) {
	for _, p := range m.ownerships.owned() {
		e := store.Expiry{Partition: p.keys, Claim: p.claim}
		for _, t := range p.staging.rows.Tables {
			switch {
			case t.Config.Calls:
				e.Called = append(e.Called, t.Config.Place)
			case t.Config.Ends:
				e.Tables = append(e.Tables, t.Config.Place)
			}
		}
		if len(e.Tables) > 0 {
			work = append(work, e)
		}
	}
	return work
}
