package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// lettersPerTrip bounds how many dead letters, with their fields, are read at once.
const lettersPerTrip = 200

// A Filter chooses events that were moved aside. A zero field chooses all.
type Filter struct {
	Partitions []int
	Key        *string
	ID         string    // entry ID of the event, or ID of the dead letter: one, or it is an *AmbiguousError
	Since      time.Time // when it became a dead letter
	Error      string    // a part of the error or the reason, in any case
	Limit      int
	Looked     func(int) // called after each part of them, with how many were looked at; nil is fine
}

// looked counts what was looked at.
func (f *Filter) looked(sum *int, n int) {
	if *sum += n; f.Looked != nil {
		f.Looked(*sum)
	}
}

// An AmbiguousError says that an ID without a partition is that of several events.
type AmbiguousError struct {
	ID    string
	Names []string // of the events, by partition/ID
}

// Error lists them.
func (e *AmbiguousError) Error() string {
	names, more := e.Names, ""
	if len(names) > namedAtMost {
		names, more = names[:namedAtMost], fmt.Sprintf(" and %d more", len(names)-namedAtMost)
	}
	return fmt.Sprintf("ID %s is that of %d events: %s%s; say which one, as it is listed", e.ID, len(e.Names), strings.Join(names, ", "), more)
}

// namedAtMost is how many events an error lists.
const namedAtMost = 32

func ambiguous[T any](id string, chosen []T, name func(T) string) error {
	e := &AmbiguousError{ID: id}
	for _, one := range chosen {
		e.Names = append(e.Names, name(one))
	}
	return e
}

func (f *Filter) chooses(ids []string, hasKey func(string) bool, err, reason string) bool {
	return (f.ID == "" || slices.Contains(ids, f.ID)) && (f.Key == nil || hasKey(*f.Key)) &&
		(f.Error == "" || contains(err, f.Error) || contains(reason, f.Error))
}

// occupied are those of the partitions that have something, and those that cannot be
// looked at: reading them tells why.
func occupied(ctx context.Context, c *store.Client, stream, processor string, partitions []int, has func(store.View) bool) ([]int, error) {
	places := make([]store.Partition, len(partitions))
	for i, n := range partitions {
		places[i] = c.Partition(stream, processor, n)
	}
	views, err := c.Views(ctx, places)
	if err != nil {
		return nil, err
	}
	var out []int
	for i, v := range views {
		if v.Err != nil || has(v) {
			out = append(out, partitions[i])
		}
	}
	return out, nil
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// A DeadState is a dead letter. Its fields are left out where only a list is
// wanted.
type DeadState struct {
	Partition int        `json:"partition"`
	ID        string     `json:"id"`    // partition/ID of the dead letter
	Event     string     `json:"event"` // partition/entry ID that the event had
	Key       string     `json:"key"`   // for people
	Reason    string     `json:"reason"`
	Attempts  int        `json:"attempts"`
	First     *time.Time `json:"first,omitempty"` // failure
	Last      *time.Time `json:"last,omitempty"`  // failure
	Died      time.Time  `json:"died"`
	Error     string     `json:"error"`
	Epoch     int64      `json:"epoch"`

	Letter   string          `json:"-"` // ID of the dead letter in its partition
	Entry    redisconn.Entry `json:"-"` // with the ID that it had
	WholeKey string          `json:"-"` // as it is
}

// Dead returns the dead letters of a processor that a filter chooses, in the
// order in which their events had been appended, as far as the clock of their
// entry IDs tells; within a partition it does so exactly. With fields they have
// their entries.
func Dead(ctx context.Context, c *store.Client, stream, processor string, f Filter, fields bool) ([]DeadState, error) {
	chosen := []DeadState{}
	partitions, err := occupied(ctx, c, stream, processor, f.Partitions, func(v store.View) bool { return v.Dead > 0 })
	if err != nil {
		return nil, err
	}
	var trips pace
	looked := 0
	for _, n := range partitions {
		p, after := c.Partition(stream, processor, n), ""
		if !f.Since.IsZero() {
			after = fmt.Sprintf("%d-0", max(f.Since.UnixMilli(), 0))
		}
		for {
			page := trips.next(lettersPerTrip)
			letters, err := c.DeadLetters(ctx, p, after, page)
			if err != nil {
				return nil, err
			}
			bytes := int64(0)
			for _, d := range letters {
				bytes += bytesOf(d.Entry.Values)
				if !f.chooses([]string{d.ID, d.Entry.ID}, func(key string) bool { return key == d.Key }, d.Error, d.Reason) {
					continue
				}
				if !fields {
					d.Entry.Values = nil
				}
				chosen = append(chosen, deadState(d))
			}
			if f.Limit > 0 && f.ID == "" && len(chosen) > 4*f.Limit { // so that memory does not hold all there are
				slices.SortStableFunc(chosen, byEvent)
				chosen = chosen[:f.Limit]
			}
			trips.came(len(letters), bytes)
			f.looked(&looked, len(letters))
			if len(letters) < page {
				break
			}
			after = letters[len(letters)-1].ID
		}
	}
	slices.SortStableFunc(chosen, byEvent)
	if f.ID != "" && len(chosen) > 1 {
		return nil, ambiguous(f.ID, chosen, func(d DeadState) string { return fmt.Sprintf("%s (event %s)", d.ID, d.Event) })
	}
	return chosen[:atMost(f.Limit, len(chosen))], nil
}

// NewestDead returns the dead letter of a processor that died last, without its fields; nil
// for none.
func NewestDead(ctx context.Context, c *store.Client, p *ProcessorState) (newest *DeadState, err error) {
	for _, s := range p.Partitions {
		if s.Dead == 0 {
			continue
		}
		d, ok, err := c.LastDead(ctx, c.Partition(p.Stream, p.Processor, s.Partition))
		if err != nil {
			return nil, err
		}
		if ok && (newest == nil || entryid.Compare(d.ID, newest.Letter) > 0) {
			d.Entry.Values = nil
			one := deadState(d)
			newest = &one
		}
	}
	return newest, nil
}

func byEvent(a, b DeadState) int {
	return cmp.Or(entryid.Compare(a.Entry.ID, b.Entry.ID), cmp.Compare(a.Partition, b.Partition))
}

func deadState(d store.DeadLetter) DeadState {
	return DeadState{
		Partition: d.Partition, ID: entryid.EventID(d.Partition, d.ID), Event: entryid.EventID(d.Partition, d.Entry.ID), Letter: d.ID, Key: store.KeyText(d.Key), WholeKey: d.Key, Reason: d.Reason, Attempts: d.Attempts,
		First: moment(d.First), Last: moment(d.Last), Died: entryid.Time(d.ID), Error: d.Error, Epoch: d.Epoch, Entry: d.Entry,
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func atMost(limit, n int) int {
	if limit > 0 && limit < n {
		return limit
	}
	return n
}

// States of a parked event.
const (
	Running = "running" // an attempt has begun
	Waiting = "waiting" // for its time
	Due     = "due"     // for whoever owns the partition
	Behind  = "behind"  // an event that is before it in its lane
)

// A RetryState is a parked event.
type RetryState struct {
	Partition int        `json:"partition"`
	Event     string     `json:"event"` // partition/entry ID
	Key       string     `json:"key"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"` // begun, and not ended by what is not its fault
	At        *time.Time `json:"at,omitempty"`
	In        int64      `json:"in"`              // ms until then, 0 if that is now
	First     *time.Time `json:"first,omitempty"` // failure
	Last      *time.Time `json:"last,omitempty"`  // failure
	Error     string     `json:"error"`

	ID string `json:"-"` // entry ID
}

// Retries returns the parked events of a processor that a filter chooses, in the
// order of Dead.
func Retries(ctx context.Context, c *store.Client, stream, processor string, f Filter) ([]RetryState, error) {
	chosen := []RetryState{}
	partitions, err := occupied(ctx, c, stream, processor, f.Partitions, func(v store.View) bool { return v.Parked > 0 })
	if err != nil {
		return nil, err
	}
	looked := 0
	for _, n := range partitions {
		states, now, err := c.Retries(ctx, c.Partition(stream, processor, n))
		if err != nil {
			return nil, err
		}
		heads := map[string]string{} // the first event of each lane
		for _, s := range states {
			if heads[s.Lane] == "" {
				heads[s.Lane] = s.ID
			}
			if f.chooses([]string{s.ID}, s.HasKey, s.Error, s.Reason) {
				chosen = append(chosen, retryState(n, s, heads[s.Lane] == s.ID, now))
			}
		}
		f.looked(&looked, len(states))
	}
	slices.SortStableFunc(chosen, func(a, b RetryState) int {
		return cmp.Or(entryid.Compare(a.ID, b.ID), cmp.Compare(a.Partition, b.Partition))
	})
	if f.ID != "" && len(chosen) > 1 {
		return nil, ambiguous(f.ID, chosen, func(r RetryState) string { return r.Event })
	}
	return chosen[:atMost(f.Limit, len(chosen))], nil
}

func retryState(partition int, s store.RetryState, head bool, now time.Time) RetryState {
	r := RetryState{
		Partition: partition, ID: s.ID, Event: entryid.EventID(partition, s.ID), Key: s.Key, State: Due, Attempts: s.Counted(),
		First: fromMilli(s.First), Last: fromMilli(s.Last), Error: s.Error,
	}
	switch wait := entryid.MomentOf(s.At).Sub(now); {
	case s.Running:
		r.State = Running
	case !head:
		r.State = Behind
	case wait > 0:
		r.State, r.At, r.In = Waiting, fromMilli(s.At), wait.Milliseconds()
	}
	return r
}

func fromMilli(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := entryid.MomentOf(ms)
	return &t
}
