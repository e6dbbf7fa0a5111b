package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// ErrNoEvent is returned if a dead letter has no fields of an event.
var ErrNoEvent = errors.New("it has no event")

// A Replay names a dead letter that becomes an event again, and its destination.
type Replay struct {
	From      Partition
	ID        string // of the dead letter
	Stream    string // the dead letter's own, or another one of the app
	Partition int
	Fields    []string // names and values of fields that the event gets where it lacks them
}

// Replay appends the event of a dead letter and removes the dead letter. It returns the new entry's
// ID; if there is no such dead letter, ok is false and id is "". A full partition is handled as by
// Append.
//
// If one script may use both partitions, this is one step, which Replay retries while its outcome
// is unknown and ctx lives; if what was unknown had happened, ok is true and id is "". The
// standalone layout always allows that, the cluster layout if the partitions' numbers are equal.
// Otherwise, and for an event with too many fields for a script, the event is appended first. Cut
// off between the two, a repetition within the stream's DedupWindow appends no second entry; later,
// or with so many fields, it does.
func (c Operator) Replay(ctx context.Context, r Replay) (id string, ok bool, err error) {
	wide := false
	if c.keys.Layout == keys.Standalone || r.Partition == r.From.Number {
		id, ok, err = c.replayAtOnce(ctx, r)
		wide = redisconn.ReplyHas(err, "WIDE ")
	}
	if wide || c.keys.Layout != keys.Standalone && r.Partition != r.From.Number {
		id, ok, err = c.replayInTwo(ctx, r)
	}
	if redisconn.ReplyHas(err, "EMPTY ") {
		err = ErrNoEvent
	}
	return id, ok, r.From.wrap("replay dead letter "+entryid.EventID(r.From.Number, r.ID), err)
}

func (c Operator) replayAtOnce(ctx context.Context, r Replay) (id string, ok bool, err error) {
	unknown := false
	log := c.keys.Partition(r.Stream, r.Partition)
	err = Producer(c).withRoom(ctx, r.Stream, r.Partition, func(size int64) error {
		args := appendTexts([]any{r.ID, size}, r.Fields)
		return persist(ctx, func() error {
			reply, err := replayScript.Run(ctx, c.NoRetry, []string{r.From.Dead, log}, args...).StringSlice()
			err = classify(err)
			switch {
			case err == nil && len(reply) == 1:
				id, ok = reply[0], true
			case err == nil:
				ok = unknown
			}
			unknown = unknown || errors.Is(err, redisconn.ErrUnknownOutcome)
			return err
		})
	})
	return id, ok, err
}

// replayInTwo appends, then removes. The event is sent under an ID of its own:
//
//  1. appended, and the reply is lost, or this process dies;
//  2. the same again: the ID is known, nothing is appended, and the entry's ID comes back;
//  3. the dead letter is removed.
func (c Operator) replayInTwo(ctx context.Context, r Replay) (id string, ok bool, err error) {
	found, err := c.Retrying.XRange(ctx, r.From.Dead, r.ID, r.ID).Result()
	if err != nil || len(found) == 0 {
		return "", false, classify(err)
	}
	d, err := parseDead(found[0], r.From.Number)
	switch {
	case err != nil:
		return "", false, err
	case len(d.Entry.Values) == 0:
		return "", false, ErrNoEvent
	}
	flat := flatten(d.Entry.Values)
	for i := 0; i < len(r.Fields); i += 2 {
		if _, there := d.Entry.Values[r.Fields[i]]; !there {
			flat = append(flat, r.Fields[i], r.Fields[i+1])
		}
	}
	send := Append{Stream: r.Stream, Partition: r.Partition, Records: [][]string{flat}}
	if len(flat) <= fieldsPerCall {
		send.IDs = []string{fmt.Sprintf("dead/%s/%s/%d/%s", r.From.Stream, r.From.Processor, r.From.Number, r.ID)}
	}
	var out Appended
	err = persist(ctx, func() error {
		out = Producer(c).Append(ctx, []Append{send})[0]
		if send.IDs == nil && out.Unknown {
			return fmt.Errorf("append to %s: unknown outcome: %v", send.Log, out.Err) // it is not repeated
		}
		return out.Err
	})
	if err != nil {
		return "", false, err
	}
	return out.IDs[0], true, c.DropDead(ctx, r.From, []string{r.ID})
}
