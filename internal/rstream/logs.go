package rstream

import (
	"context"
	"fmt"
)

// A Log is a partition, whoever processes it.
type Log struct {
	Length  int64
	First   string // ID of the first entry, "" for none
	End     string // the last ID that an entry ever had, "0-0" for none
	Deleted string // the largest ID that was removed by XDEL, "" for none or where the server does not know
	Delayed int64
	Err     error // the server could not tell, for instance because a key holds a wrong type
}

// Logs looks at the partitions of a stream without changing anything, in one round
// trip per 256 of them.
func (c *Client) Logs(ctx context.Context, stream string, partitions int) ([]Log, error) {
	out := make([]Log, 0, partitions)
	for len(out) < partitions {
		from := len(out)
		calls := make([]*call, min(partitions-from, viewsPerTrip))
		for i := range calls {
			calls[i] = scriptCall(ctx, logScript, []string{c.keys.Partition(stream, from+i), c.dueKeys(stream, from+i).Due})
		}
		pipeline(ctx, c.ordinary, calls)
		for i, call := range calls {
			flat, err := call.reply.Slice()
			if err != nil && !isReply(err) {
				return nil, fmt.Errorf("stream %s partition %d: look: %w", stream, from+i, err)
			}
			var l Log
			if err == nil {
				f := named(flat)
				l = Log{Length: f.number("length"), First: f.text("first"), End: f.text("end"), Deleted: f.text("deleted"), Delayed: f.number("delayed")}
				err = f.err
			}
			if err != nil {
				l.Err = fmt.Errorf("stream %s partition %d: look: %w", stream, from+i, sorted(err))
			}
			out = append(out, l)
		}
	}
	return out, nil
}
