package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
)

// A DeadLetter is an event that a processor gave up. Only Read sets Fields.
type DeadLetter struct {
	Partition int        `json:"partition"`
	ID        string     `json:"id"`    // partition/ID of the dead letter
	Event     string     `json:"event"` // partition/entry ID of the event
	Key       string     `json:"key"`   // as text to read
	Reason    string     `json:"reason"`
	Attempts  int        `json:"attempts"`
	First     *time.Time `json:"first,omitempty"` // failure
	Last      *time.Time `json:"last,omitempty"`  // failure
	Died      time.Time  `json:"died"`
	Error     string     `json:"error"`
	Epoch     int64      `json:"epoch"`

	KeyBytes string         `json:"-"` // the key, unchanged
	Fields   map[string]any `json:"-"` // of the entry, each a string; nil in a list

	letter, entry string // IDs without the partition
}

// DeadLetters are the dead letters of one processor.
type DeadLetters struct {
	c                 *core
	stream, processor string
}

// DeadLetters returns the dead letters of a processor, even of a removed one: they outlive it. It
// does no I/O.
func (c *Client) DeadLetters(stream, processor string) *DeadLetters {
	return &DeadLetters{&c.core, stream, processor}
}

// lettersPerTrip bounds how many dead letters, with their fields, are read at once.
const lettersPerTrip = 200

// List returns the selected dead letters in the order in which their events were appended: exactly
// within a partition, by the clocks in the entry IDs across partitions.
func (d *DeadLetters) List(ctx context.Context, f *Filter) ([]DeadLetter, error) {
	return d.read(ctx, f, false)
}

// Read is List with the fields of the entries, which may be large.
func (d *DeadLetters) Read(ctx context.Context, f *Filter) ([]DeadLetter, error) {
	return d.read(ctx, f, true)
}

func (d *DeadLetters) read(ctx context.Context, by *Filter, fields bool) ([]DeadLetter, error) {
	client, m, partitions, err := d.occupied(ctx)
	if err != nil {
		return nil, err
	}
	f, err := by.in(d.stream, m)
	if err != nil {
		return nil, err
	}
	r := &letterReader{client: client, f: &f, fields: fields, chosen: []DeadLetter{}, looked: func(n int) { d.c.tell("dead letters looked at:", n, 0) }}
	for _, n := range partitions {
		if slices.Contains(f.Partitions, n) {
			if err := r.read(ctx, client.Partition(d.stream, d.processor, n)); err != nil {
				return nil, err
			}
		}
	}
	r.sort()
	if f.ID != "" && len(r.chosen) > 1 {
		return nil, ambiguous(f.ID, r.chosen, func(d DeadLetter) string { return fmt.Sprintf("%s (event %s)", d.ID, d.Event) })
	}
	return atMost(f.Limit, r.chosen), nil
}

// occupied returns the partitions that have dead letters, and the stream's metadata. A missing
// processor is an error, unless it left dead letters.
func (d *DeadLetters) occupied(ctx context.Context) (*store.Client, store.Meta, []int, error) {
	client, m, err := d.c.meta(ctx, d.stream)
	if err != nil {
		return nil, m, nil, err
	}
	some, err := occupied(ctx, client, d.stream, d.processor, m.Numbers(), func(v store.View) bool { return v.Dead > 0 })
	if err == nil && len(some) == 0 && !slices.Contains(m.Processors, d.processor) {
		err = d.c.noProcessor(client, d.stream, d.processor, m)
	}
	return client, m, some, err
}

type letterReader struct {
	client *store.Client
	f      *Filter
	fields bool
	looked func(int)
	trips  inspect.Pace
	seen   int
	chosen []DeadLetter
}

func (r *letterReader) read(ctx context.Context, p store.Partition) error {
	after := ""
	if !r.f.Since.IsZero() {
		after = fmt.Sprintf("%d-0", max(r.f.Since.UnixMilli(), 0))
	}
	for {
		page := r.trips.Next(lettersPerTrip)
		letters, err := r.client.DeadLetters(ctx, p, after, page)
		if err != nil {
			return err
		}
		bytes := int64(0)
		for _, one := range letters {
			bytes += inspect.Bytes(one.Entry.Values)
			if !r.f.chooses([]string{one.ID, one.Entry.ID}, func(key string) bool { return key == one.Key }, one.Error, one.Reason) {
				continue
			}
			if !r.fields {
				one.Entry.Values = nil
			}
			r.chosen = append(r.chosen, letterOf(one))
		}
		if r.f.Limit > 0 && r.f.ID == "" && len(r.chosen) > 4*r.f.Limit { // so that memory does not hold all of them
			r.sort()
			r.chosen = r.chosen[:r.f.Limit]
		}
		r.trips.Came(len(letters), bytes)
		r.seen += len(letters)
		r.looked(r.seen)
		if len(letters) < page {
			return nil
		}
		after = letters[len(letters)-1].ID
	}
}

func (r *letterReader) sort() {
	sort.SliceStable(r.chosen, func(i, j int) bool {
		a, b := &r.chosen[i], &r.chosen[j]
		return oldest(a.entry, b.entry, a.Partition, b.Partition) < 0
	})
}

func letterOf(d store.DeadLetter) DeadLetter {
	return DeadLetter{
		Partition: d.Partition, ID: entryid.EventID(d.Partition, d.ID), Event: entryid.EventID(d.Partition, d.Entry.ID), letter: d.ID, entry: d.Entry.ID,
		Key: store.KeyText(d.Key), KeyBytes: d.Key, Reason: d.Reason, Attempts: d.Attempts,
		First: momentOf(d.First), Last: momentOf(d.Last), Died: entryid.Time(d.ID), Error: d.Error, Epoch: d.Epoch, Fields: d.Entry.Values,
	}
}

// Newest returns the dead letter that died last, nil for none. With an error it returns the newest
// of the readable partitions.
func (d *DeadLetters) Newest(ctx context.Context) (newest *DeadLetter, err error) {
	client, _, partitions, err := d.occupied(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range partitions {
		one, ok, readErr := client.LastDead(ctx, client.Partition(d.stream, d.processor, n))
		err = cmp.Or(err, readErr)
		if ok && (newest == nil || entryid.Compare(one.ID, newest.letter) > 0) {
			one.Entry.Values = nil
			l := letterOf(one)
			newest = &l
		}
	}
	return newest, err
}

// Retry gives dead letters back to their own processor, in this order. Their events are parked, due
// at once, and attempted anew from attempt 1, in their lanes: with OrderKey later events of their
// key wait for them. The next owner runs them, even without a Retry option; OnError then decides
// about those that fail again. Letters that were dropped, replayed or retried meanwhile are
// skipped. Retry returns the letters given back, even with an error; the others are unchanged, and
// the call may be repeated. At most MaxLen events may be parked in a partition.
func (d *DeadLetters) Retry(ctx context.Context, letters []DeadLetter) ([]DeadLetter, error) {
	client, m, err := d.c.meta(ctx, d.stream)
	if err == nil && !slices.Contains(m.Processors, d.processor) {
		err = fmt.Errorf("stream %s has no processor %s any more, so that nothing would run the events: Replay appends them again", d.stream, d.processor)
	}
	if err != nil {
		return nil, err
	}
	done, owners := []DeadLetter{}, map[int]store.Partition{}
	defer func() {
		for _, p := range owners {
			client.NotifyOwner(ctx, p)
		}
	}()
	for _, l := range letters {
		p := client.Partition(d.stream, d.processor, l.Partition)
		ok, err := client.Revive(ctx, p, l.letter, m.MaxLen)
		if err != nil {
			return done, err
		}
		if ok {
			done, owners[l.Partition] = append(done, l), p
		}
	}
	return done, nil
}

// Drop deletes dead letters permanently. It returns the deleted ones, even with an error.
func (d *DeadLetters) Drop(ctx context.Context, letters []DeadLetter) ([]DeadLetter, error) {
	client, err := d.c.app.Client()
	if err != nil {
		return nil, err
	}
	place := func(l DeadLetter) (int, string) { return l.Partition, l.letter }
	return byPartition(letters, place, func(n int, ids []string) ([]string, error) {
		if err := client.DropDead(ctx, client.Partition(d.stream, d.processor, n), ids); err != nil {
			return nil, err
		}
		return ids, nil
	})
}
