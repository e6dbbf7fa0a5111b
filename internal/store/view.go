package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

const statesLooked = 100 // retry states of a partition, in one view

// A Viewer only reads. inspect uses it, and so does cli for what inspect does not show.
type Viewer struct{ *core }

// A View is a partition as one processor sees it.
type View struct {
	Owner     string        // executor ID in the lock, "" if the lock is free
	Tenure    string        // number in the lock
	LockLeft  time.Duration // remaining life of the lock
	Epoch     int64         // of the last ownership, 0 if there was none
	Group     string        // the consumer group, "" if there is none
	Delivered string        // last ID given to an owner
	Floor     string        // everything up to here is acked
	Pending   int64         // delivered, not acked; -1 where the last owner read by position, of which Redis does not know it
	Behind    int64         // not delivered, -1 when it must be counted with CountBehind
	Length    int64
	Added     int64  // entries ever appended; -1 on an embedded server, which does not tell
	End       string // last ID ever appended
	Oldest    string // the first ID that is not acked, "" if all is
	Parked    int64
	Failed    int64 // of the parked, failed and waiting for another attempt; -1 where too many are parked to count
	Dead      int64 // dead letters
	Delayed   int64 // events that wait for their time
	Lost      int64 // removed before they were processed

	Quarantine *Quarantine // nil: the partition is not quarantined
	Halt       *Quarantine // why and at which unacked event a worker halted, nil for none
	Forgotten  *Forgotten  // what Redis has forgotten within the last day, nil for nothing
	Now        time.Time   // by the server's clock
	Err        error       // the server could not tell, for instance because a key holds a wrong type
}

// Views looks at partitions as processors see them, without changing anything, in the order of ps.
// What belongs to a partition is read once for all its processors. A round trip is for 1024
// partitions with one processor, or fewer with more; in a cluster each partition is a request.
func (c Viewer) Views(ctx context.Context, ps []Partition) ([]View, error) {
	views := make([]View, len(ps))
	for left := c.looks(ps); len(left) > 0; {
		trip := left[:inOneTrip(left)]
		left = left[len(trip):]
		calls := make([]*redisconn.Call, len(trip))
		for n, look := range trip {
			calls[n] = viewCall(ctx, ps, look)
		}
		redisconn.Pipeline(ctx, c.Retrying, calls)
		for n, look := range trip {
			all := look.all()
			seen, err := seenBy(calls[n].Reply, look)
			if err != nil {
				return nil, ps[all[0]].wrap("view", err)
			}
			for i, at := range all[:len(seen)] {
				v, err := parseView(seen[i])
				v.Err = ps[at].failed("view", c.NameWrongTypes(ctx, ps[at].keys(), err))
				views[at] = v
			}
			if look.skip(len(seen)); look.places > 0 {
				left = append(left, look) // what was read is large
			}
		}
	}
	return views, nil
}

func parseView(reply any) (View, error) {
	f, ok := reply.(*replyFields)
	if !ok {
		return View{}, classify(redisconn.ScriptError(fmt.Sprint(reply)))
	}
	owner, number, _ := strings.Cut(f.text("held"), ":")
	v := View{
		Owner: owner, Tenure: number, LockLeft: time.Duration(max(f.number("left"), 0)) * time.Millisecond, Epoch: f.number("epoch"),
		Group: f.text("group"), Delivered: f.text("delivered"), Floor: f.text("floor"),
		Pending: f.number("pending"), Behind: f.number("behind"), Length: f.number("length"), Added: f.number("added"), End: f.text("end"),
		Oldest: f.text("oldest"), Now: time.UnixMilli(f.number("now")), Parked: f.number("parked"), Failed: f.number("failed"),
		Dead: f.number("dead"), Delayed: f.number("delayed"), Lost: f.number("lost"),
	}
	quarantine, halt := f.text("quarantine"), f.text("halt")
	v.Forgotten = parseForgotten(f.text("forgotten")).since(v.Now.Add(-forgottenFor))
	if f.err != nil {
		return View{}, f.err
	}
	var err error
	if v.Quarantine, err = parseQuarantine(quarantine); err != nil {
		return v, err
	}
	v.Halt, err = parseQuarantine(halt)
	if h := v.Halt; h != nil && (h.Event == "" && h.Epoch < v.Epoch || h.Event != "" && entryid.Compare(h.Event, v.Floor) <= 0) {
		v.Halt = nil // the event is acked, or an owner has come
	}
	return v, err
}
