package inspect

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// A LogState is a partition of a stream, independent of processors.
type LogState struct {
	Partition int    `json:"partition"`
	Key       string `json:"key"` // in Redis
	Length    int64  `json:"length"`
	First     string `json:"first"`   // ID of the first entry, "" for none
	End       string `json:"end"`     // last ID ever added
	Deleted   string `json:"deleted"` // largest ID removed by XDEL, "" for none or unknown
	Delayed   int64  `json:"delayed"`
	Err       string `json:"err,omitempty"`
}

// Span is the time between the first and the last entry, by their IDs.
func (s LogState) Span() time.Duration {
	return max(entryid.Time(s.End).Sub(entryid.Time(s.First)), 0)
}

// Logs looks at the partitions of a stream.
func Logs(ctx context.Context, c *store.Client, stream string, partitions int) ([]LogState, error) {
	logs, err := c.Logs(ctx, stream, partitions)
	if err != nil {
		return nil, err
	}
	out := make([]LogState, len(logs))
	for i, l := range logs {
		out[i] = LogState{Partition: i, Key: c.Keys().Partition(stream, i), Length: l.Length, First: l.First, End: l.End, Deleted: l.Deleted, Delayed: l.Delayed}
		if l.Err != nil {
			out[i].Err = l.Err.Error()
		}
	}
	return out, nil
}
