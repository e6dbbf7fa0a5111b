package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
)

// A Quarantine is a partition that a failed event has stopped.
type Quarantine struct {
	Stream    string
	Processor string
	Partition int
	Reason    string
	Event     string // partition/entry ID, "" if it was no event's fault
	Worker    string // that stopped; "" if unknown
	At        time.Time
}

// Quarantines returns the quarantined partitions of the app, by stream, processor and partition. It
// fails if a partition cannot be inspected.
func (c *Client) Quarantines(ctx context.Context) ([]Quarantine, error) {
	app, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	var out []Quarantine
	for _, p := range app.Processors() {
		for _, one := range p.Partitions {
			if one.Err != "" {
				return nil, fmt.Errorf("stream %s partition %d: processor %s: %s", p.Stream, one.Partition, p.Processor, one.Err)
			}
			if q := one.Quarantine; q != nil {
				out = append(out, Quarantine{p.Stream, p.Processor, one.Partition, q.Reason, q.Event, q.Worker, q.At})
			}
		}
	}
	return out, nil
}

// A Released is a quarantine that was ended.
type Released struct {
	Stream    string    `json:"stream"`
	Processor string    `json:"processor"`
	Partition int       `json:"partition"`
	Reason    string    `json:"reason"` // of the quarantine
	Event     string    `json:"event"`
	At        time.Time `json:"at"`
	Skipped   bool      `json:"skipped"`
}

// Release ends the quarantine of a partition, once its cause is fixed: the owner retries the event
// that failed, or with skip passes it over, unprocessed; a row whose end failed stays without one. A partition that is not quarantined is a
// *NotQuarantinedError.
func (c *Client) Release(ctx context.Context, stream, processor string, partition int, skip bool) (Released, error) {
	client, m, err := c.registered(ctx, stream, processor)
	if err == nil {
		_, err = chosen(stream, m, []int{partition})
	}
	if err != nil {
		return Released{}, err
	}
	q, ok, err := client.ReleaseQuarantine(ctx, client.Partition(stream, processor, partition), skip)
	if err == nil && !ok {
		err = &NotQuarantinedError{stream, processor, partition}
	}
	if err != nil {
		return Released{}, err
	}
	return Released{stream, processor, partition, q.Reason, entryid.EventID(partition, q.Event), entryid.MomentOf(q.At), skip}, nil
}

// A NotQuarantinedError is returned for a partition that is not quarantined.
type NotQuarantinedError struct {
	Stream, Processor string
	Partition         int
}

// Error names the partition.
func (e *NotQuarantinedError) Error() string {
	return fmt.Sprintf("stream %s partition %d: processor %s: it is not quarantined", e.Stream, e.Partition, e.Processor)
}
