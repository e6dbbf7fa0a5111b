package store

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// partitionsPerTrip is how many partitions share a round trip where each costs the server little.
const partitionsPerTrip = 256

// A Log is a partition, independent of processors.
type Log struct {
	Length  int64
	First   string // ID of the first entry, "" for none
	End     string // the last ID that an entry ever had, "0-0" for none
	Deleted string // the largest ID that was removed by XDEL, "" for none or where the server does not know
	Delayed int64
	Err     error // the server could not tell, for instance because a key holds a wrong type
}

// logsPerTrip is how many of these scripts the server runs in a row: each may read some 100 KB.
const logsPerTrip = 64

// Logs looks at the partitions of a stream, 64 per round trip, without changing anything.
func (c Viewer) Logs(ctx context.Context, stream string, partitions int) ([]Log, error) {
	out := make([]Log, partitions)
	calls := make([]*redisconn.Call, partitions)
	for n := range calls {
		calls[n] = redisconn.ScriptCall(ctx, logScript, []string{c.keys.Partition(stream, n), c.dueKeys(stream, n).Due})
	}
	redisconn.PipelineInTurns(ctx, c.Retrying, calls, logsPerTrip)
	for n, call := range calls {
		l, err := parseLog(call.Reply.Slice())
		if err == nil && l.End == "" {
			err = c.readEnds(ctx, c.keys.Partition(stream, n), &l)
		}
		if err != nil {
			err = fmt.Errorf("stream %s partition %d: look: %w", stream, n, classify(err))
			if !redisconn.IsReply(err) {
				return nil, err
			}
			l = Log{Err: err}
		}
		out[n] = l
	}
	return out, nil
}

func parseLog(flat []any, err error) (Log, error) {
	if err != nil {
		return Log{}, err
	}
	f := fieldsOf(flat)
	l := Log{Length: f.number("length"), First: f.text("first"), End: f.text("end"), Deleted: f.text("deleted"), Delayed: f.number("delayed")}
	return l, f.err
}

// readEnds reads both ends of a partition without a script, which would copy large entries often.
func (c Viewer) readEnds(ctx context.Context, log string, l *Log) error {
	first, err := c.Retrying.XRangeN(ctx, log, "-", "+", 1).Result()
	if err != nil {
		return err
	}
	last, err := c.Retrying.XRevRangeN(ctx, log, "+", "-", 1).Result()
	if err == nil && len(first) > 0 && len(last) > 0 { // not removed meanwhile
		l.First, l.End = first[0].ID, last[0].ID
	}
	return err
}
