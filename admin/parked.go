package admin

import (
	"context"
	"sort"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
)

// States of a parked event.
const (
	ParkedRunning = "running" // an attempt has begun
	ParkedWaiting = "waiting" // for its time
	ParkedDue     = "due"     // for the owner of the partition
	ParkedBehind  = "behind"  // for an event before it in its lane
)

// A ParkedEvent is an event that waits for another attempt, or behind one that does.
type ParkedEvent struct {
	Partition int        `json:"partition"`
	Event     string     `json:"event"` // partition/entry ID
	Key       string     `json:"key"`
	State     string     `json:"state"`    // ParkedRunning and so on
	Attempts  int        `json:"attempts"` // begun, without those that ended through no fault of the event
	At        *time.Time `json:"at,omitempty"`
	In        int64      `json:"in"`              // ms until At, 0 if past
	First     *time.Time `json:"first,omitempty"` // failure
	Last      *time.Time `json:"last,omitempty"`  // failure
	Error     string     `json:"error"`

	id string // entry ID
}

// Parked are the parked events of one processor.
type Parked struct {
	c                 *core
	stream, processor string
}

// Parked returns the parked events of a processor. It does no I/O.
func (c *Client) Parked(stream, processor string) *Parked { return &Parked{&c.core, stream, processor} }

// List returns the selected parked events in the order in which they were appended: exactly within
// a partition, by the clocks in the entry IDs across partitions.
func (p *Parked) List(ctx context.Context, by *Filter) ([]ParkedEvent, error) {
	client, m, err := p.c.registered(ctx, p.stream, p.processor)
	if err != nil {
		return nil, err
	}
	f, err := by.in(p.stream, m)
	if err != nil {
		return nil, err
	}
	partitions, err := occupied(ctx, client, p.stream, p.processor, f.Partitions, func(v store.View) bool { return v.Parked > 0 })
	if err != nil {
		return nil, err
	}
	chosen, looked := []ParkedEvent{}, 0
	for _, n := range partitions {
		states, now, err := client.Retries(ctx, client.Partition(p.stream, p.processor, n))
		if err != nil {
			return nil, err
		}
		heads := map[string]string{} // the first event of each lane
		for _, s := range states {
			if heads[s.Lane] == "" {
				heads[s.Lane] = s.ID
			}
			if f.chooses([]string{s.ID}, s.HasKey, s.Error, s.Reason) {
				chosen = append(chosen, parkedOf(n, s, heads[s.Lane] == s.ID, now))
			}
		}
		looked += len(states)
		p.c.tell("parked events looked at:", looked, 0)
	}
	sort.SliceStable(chosen, func(i, j int) bool {
		return oldest(chosen[i].id, chosen[j].id, chosen[i].Partition, chosen[j].Partition) < 0
	})
	if f.ID != "" && len(chosen) > 1 {
		return nil, ambiguous(f.ID, chosen, func(e ParkedEvent) string { return e.Event })
	}
	return atMost(f.Limit, chosen), nil
}

func parkedOf(partition int, s store.RetryState, head bool, now time.Time) ParkedEvent {
	e := ParkedEvent{
		Partition: partition, id: s.ID, Event: entryid.EventID(partition, s.ID), Key: s.Key, State: ParkedDue, Attempts: s.Counted(),
		First: fromMilli(s.First), Last: fromMilli(s.Last), Error: s.Error,
	}
	switch wait := entryid.MomentOf(s.At).Sub(now); {
	case s.Running:
		e.State = ParkedRunning
	case !head:
		e.State = ParkedBehind
	case wait > 0:
		e.State, e.At, e.In = ParkedWaiting, fromMilli(s.At), wait.Milliseconds()
	}
	return e
}

func fromMilli(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := entryid.MomentOf(ms)
	return &t
}

// Retry makes parked events due now, and returns those that it made due, even with an error. Events
// that are running, wait behind another one, or are gone are left out.
func (p *Parked) Retry(ctx context.Context, events []ParkedEvent) ([]ParkedEvent, error) {
	return p.change(ctx, events, (*store.Client).RetryNow)
}

// Drop deletes parked events permanently, without dead letters. It returns the deleted ones, even
// with an error.
func (p *Parked) Drop(ctx context.Context, events []ParkedEvent) ([]ParkedEvent, error) {
	return p.change(ctx, events, (*store.Client).DropParked)
}

func (p *Parked) change(ctx context.Context, events []ParkedEvent, change func(*store.Client, context.Context, store.Partition, []string) ([]string, error)) ([]ParkedEvent, error) {
	client, err := p.c.app.Client()
	if err != nil {
		return nil, err
	}
	place := func(e ParkedEvent) (int, string) { return e.Partition, e.id }
	return byPartition(events, place, func(n int, ids []string) ([]string, error) {
		return change(client, ctx, client.Partition(p.stream, p.processor, n), ids)
	})
}
