package rstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	viewsPerTrip   = 256
	viewsPerScript = 128 // bounds how long one keeps the server, to a few ms
	countPage      = 500
	statesLooked   = 100 // retry states of a partition, in one view
)

// A View is a partition as one processor sees it.
type View struct {
	Owner     string        // executor ID in the lock, "" when nobody holds it
	Tenure    string        // number in the lock
	LockLeft  time.Duration // remaining life of the lock
	Epoch     int64         // of the last ownership, 0 if there was none
	Group     string        // the consumer group, "" if there is none
	Delivered string        // last ID given to an owner
	Floor     string        // everything up to here is acked
	Pending   int64         // delivered, not acked
	Behind    int64         // not delivered, -1 when it must be counted with CountBehind
	Length    int64
	Added     int64  // entries ever appended; -1: the server, an embedded one, does not tell
	End       string // last ID ever appended
	Oldest    string // the first ID that is not acked, "" if all is
	Parked    int64
	Failed    int64 // of the parked, failed and waiting for another attempt; -1 where so many are parked that nobody counts
	Dead      int64 // dead letters
	Delayed   int64 // events that wait for their time
	Lost      int64 // removed before they were processed

	Quarantine *Quarantine // nil: the partition is not quarantined
	Halt       *Quarantine // at which event a worker halted that is not acked yet, nil for none
	Now        time.Time   // by the server's clock
	Err        error       // the server could not tell, for instance because a key holds a wrong type
}

// Views looks at partitions of one processor without changing anything, in one round
// trip, of two requests, per 256 of them; in a cluster each partition is a request to
// its node. The results stand in the order of ps.
func (c *Client) Views(ctx context.Context, ps []Place) ([]View, error) {
	out := make([]View, 0, len(ps))
	for some := range slices.Chunk(ps, viewsPerTrip) {
		parts := c.parts(len(some), viewsPerScript, func(i int) string { return some[i].Log })
		calls := make([]*call, len(parts))
		for n, part := range parts {
			calls[n] = viewCall(ctx, some, part)
		}
		pipeline(ctx, c.ordinary, calls)
		views := make([]View, len(some))
		for n, part := range parts {
			seen, err := calls[n].reply.Slice()
			if err == nil && len(seen) != len(part) {
				err = fmt.Errorf("reply for %d partitions, of %d", len(seen), len(part))
			}
			if err != nil {
				return nil, some[part[0]].wrap("view", err)
			}
			for i, at := range part {
				v, err := parseView(seen[i])
				v.Err = some[at].wrap("view", c.blamed(ctx, some[at], err))
				views[at] = v
			}
		}
		out = append(out, views...)
	}
	return out, nil
}

// viewCall looks at some partitions of one processor.
func viewCall(ctx context.Context, ps []Place, part []int) *call {
	keys := make([]string, 0, 6*len(part))
	for _, at := range part {
		p := ps[at]
		keys = append(keys, p.Log, p.Lock, p.Own, p.Retry, p.Dead, p.Due)
	}
	return scriptCall(ctx, viewScript, keys, ps[0].Processor, ExecutorIDLength, statesLooked)
}

func parseView(reply any) (View, error) {
	flat, ok := reply.([]any)
	if !ok {
		return View{}, sorted(scriptError(fmt.Sprint(reply)))
	}
	f := named(flat)
	owner, number, _ := strings.Cut(f.text("held"), ":")
	v := View{
		Owner: owner, Tenure: number, LockLeft: time.Duration(max(f.number("left"), 0)) * time.Millisecond, Epoch: f.number("epoch"),
		Group: f.text("group"), Delivered: f.text("delivered"), Floor: f.text("floor"),
		Pending: f.number("pending"), Behind: f.number("behind"), Length: f.number("length"), Added: f.number("added"), End: f.text("end"),
		Oldest: f.text("oldest"), Now: time.UnixMilli(f.number("now")), Parked: f.number("parked"), Failed: f.number("failed"),
		Dead: f.number("dead"), Delayed: f.number("delayed"), Lost: f.number("lost"),
	}
	quarantine, halt := f.text("quarantine"), f.text("halt")
	if f.err != nil {
		return View{}, f.err
	}
	var err error
	if v.Quarantine, err = parseQuarantine(quarantine); err != nil {
		return v, err
	}
	if v.Halt, err = parseQuarantine(halt); v.Halt != nil && CompareIDs(v.Halt.Event, v.Floor) <= 0 {
		v.Halt = nil // the event is acked
	}
	return v, err
}

// CountBehind counts the entries of a partition behind an ID, a page per round
// trip; the entries themselves stay on the server. With a limit above zero it stops
// once there are more, and returns a number above the limit.
func (c *Client) CountBehind(ctx context.Context, p Place, id string, limit int64) (int64, error) {
	for total := int64(0); ; {
		reply, err := countScript.Run(ctx, c.ordinary, []string{p.Log}, id, countPage).Slice()
		if err != nil {
			return 0, p.wrap("count", sorted(err))
		}
		n, ok := reply[0].(int64)
		if !ok {
			return 0, p.wrap("count", fmt.Errorf("unexpected reply %v", reply))
		}
		if total += n; n < countPage || (limit > 0 && total > limit) {
			return total, nil
		}
		id, _ = reply[1].(string)
	}
}
