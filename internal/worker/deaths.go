package worker

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/help"
)

// deathsDecide is at how many deaths in a row an event without a Retry is one that failed.
const deathsDecide = 3

// deaths is what an ownership knows of the event at which owners before it ended. Use by
// one goroutine.
type deaths struct {
	event string // its ID, "" for none, or none any more
	n     int    // so many owners in a row ended at it; the first one is a guess
	begun bool   // it is stored that this owner begins it
}

// meet prepares for the next entry, whatever will be done to it: to find its key may end
// the process, too. ok is false where it may not be begun yet. The error is the end of the ownership.
func (p *partition) meet(id string) (ok bool, err error) {
	d := &p.loop.deaths
	if d.event != "" && entryid.Compare(id, d.event) > 0 {
		d.event = ""
	}
	switch {
	case d.event != id || p.decided(id) && p.retries.MaxAttempts() > 0:
	case d.n+1 >= p.mostDeaths() && !p.claimTurn(isolationExclusive):
		return false, nil
	case !d.begun:
		if err := p.parked.beginSuspect(id); err != nil {
			return false, err
		}
		d.begun = true
		if d.n > 1 {
			p.log.Error("event ended its workers", "event", entryid.EventID(p.keys.Number, id), "attempt", d.n, "help", help.EventEndsWorkers)
			p.halted(&EventError{Stream: p.keys.Stream, Processor: p.keys.Processor, Partition: p.keys.Number, ID: id, Err: d.err()})
		}
	}
	return true, nil
}

// mostDeaths is how many deaths decide about an event: with a Retry, its attempts. At
// the last one it runs alone; the first one, a guess, never decides.
func (p *partition) mostDeaths() int {
	if most := p.retries.MaxAttempts(); most > 0 {
		return max(most, 2)
	}
	return deathsDecide
}

// decided reports whether an event has ended as many owners as it may.
func (p *partition) decided(id string) bool {
	return p.loop.deaths.event == id && p.loop.deaths.n >= p.mostDeaths()
}

func (d *deaths) err() error {
	return fmt.Errorf("the worker died or lost the partition %d times in a row while it processed this event", d.n)
}

func (s *redisStore) beginSuspect(id string) error {
	return s.persist(func(ctx context.Context) error {
		return s.i.w.client.BeginSuspect(ctx, s.t.keys, s.t.claim, id)
	})
}
