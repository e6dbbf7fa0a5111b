package rstream

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	viewsPerTrip = 256
	countPage    = 500
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
	End       string // last ID ever appended
	Err       error  // the server could not tell, for instance because a key holds a wrong type
}

// Views looks at partitions without changing anything, in one round trip per 256
// of them. The results stand in the order of ps.
func (c *Client) Views(ctx context.Context, ps []Place) ([]View, error) {
	out := make([]View, 0, len(ps))
	for len(ps) > 0 {
		n := min(len(ps), viewsPerTrip)
		calls := make([]*call, n)
		for i, p := range ps[:n] {
			calls[i] = scriptCall(ctx, viewScript, []string{p.Log, p.Lock, p.Own}, p.Processor, ExecutorIDLength)
		}
		pipeline(ctx, c.ordinary, calls)
		for i, p := range ps[:n] {
			flat, err := calls[i].reply.Slice()
			if err != nil && !isReply(err) {
				return nil, p.wrap("view", err)
			}
			v, parseErr := parseView(flat)
			if err == nil {
				err = parseErr
			}
			v.Err = p.wrap("view", err)
			out = append(out, v)
		}
		ps = ps[n:]
	}
	return out, nil
}

func parseView(flat []any) (View, error) {
	if len(flat) != 10 {
		return View{}, fmt.Errorf("unexpected reply %v", flat)
	}
	texts, numbers := map[int]string{}, map[int]int64{}
	for i, v := range flat {
		switch v := v.(type) {
		case string:
			texts[i] = v
		case int64:
			numbers[i] = v
		}
	}
	owner, number, _ := strings.Cut(texts[0], ":")
	return View{
		Owner: owner, Tenure: number, LockLeft: time.Duration(max(numbers[1], 0)) * time.Millisecond, Epoch: numbers[2],
		Group: texts[3], Delivered: texts[4], Floor: texts[5],
		Pending: numbers[6], Behind: numbers[7], Length: numbers[8], End: texts[9],
	}, nil
}

// CountBehind counts the entries of a partition behind an ID, in as many round
// trips as it takes; the entries themselves stay on the server.
func (c *Client) CountBehind(ctx context.Context, p Place, id string) (int64, error) {
	for total := int64(0); ; {
		reply, err := countScript.Run(ctx, c.ordinary, []string{p.Log}, id, countPage).Slice()
		if err != nil {
			return 0, p.wrap("count", sorted(err))
		}
		n, ok := reply[0].(int64)
		if !ok {
			return 0, p.wrap("count", fmt.Errorf("unexpected reply %v", reply))
		}
		if total += n; n < countPage {
			return total, nil
		}
		id, _ = reply[1].(string)
	}
}
