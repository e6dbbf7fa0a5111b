package rstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/keys"
)

// replayWindow is how long a replay that was cut off between its two steps is
// recognized when it is repeated.
const replayWindow = time.Hour

// ErrManyFields says that an event has too many fields for a script.
var ErrManyFields = errors.New("the event cannot be appended by a script: it has too many fields, or none")

// A Replay says which dead letter becomes an event again, and where.
type Replay struct {
	From      Place
	ID        string // of the dead letter
	Stream    string // the dead letter's own, or another one of the app
	Partition int
	Fields    []string // names and values that the event gets where it does not have them
}

// Replay appends the event of a dead letter and removes the dead letter. It
// returns the new entry's ID; ok is false if there is no such dead letter, and ID
// is then "".
//
// Where both partitions may share a script, which they always do under the
// standalone layout and under the cluster layout when their numbers are equal,
// this is one step, and it is repeated inside while its outcome is unknown and
// ctx lives. If what was unknown then happened, ok is true and the ID "".
// Otherwise the event is appended first. Cut off between the two, a repetition
// within the hour finds the entry and appends no second one; later it does.
func (c *Client) Replay(ctx context.Context, r Replay) (id string, ok bool, err error) {
	if c.keys.Layout == keys.Standalone || r.Partition == r.From.Partition {
		id, ok, err = c.replayAtOnce(ctx, r)
	} else {
		id, ok, err = c.replayInTwo(ctx, r)
	}
	if replyHas(err, "PACKED") {
		err = ErrManyFields
	}
	return id, ok, r.From.wrap("replay dead letter "+r.ID, err)
}

func (c *Client) replayAtOnce(ctx context.Context, r Replay) (id string, ok bool, err error) {
	args := []any{r.ID}
	for _, s := range r.Fields {
		args = append(args, s)
	}
	unknown := false
	err = c.persist(ctx, func() error {
		reply, err := replayScript.Run(ctx, c.once, []string{r.From.Dead, c.keys.Partition(r.Stream, r.Partition)}, args...).StringSlice()
		err = sorted(err)
		switch {
		case err == nil && len(reply) == 1:
			id, ok = reply[0], true
		case err == nil:
			ok = unknown
		}
		unknown = unknown || errors.Is(err, ErrUnknownOutcome)
		return err
	})
	return id, ok, err
}

// replayInTwo appends, then removes. The entry is named after the dead letter:
//
//  1. appended, and the reply is lost, or this process dies;
//  2. the same again: the name is known, nothing is appended, the entry's ID comes
//     back;
//  3. the dead letter is removed.
func (c *Client) replayInTwo(ctx context.Context, r Replay) (id string, ok bool, err error) {
	found, err := c.ordinary.XRange(ctx, r.From.Dead, r.ID, r.ID).Result()
	if err != nil || len(found) == 0 {
		return "", false, sorted(err)
	}
	var flat []string
	for i, all := 0, flatten(found[0].Values); i < len(all); i += 2 {
		if !strings.HasPrefix(all[i], deadPrefix) {
			flat = append(flat, all[i], all[i+1])
		}
	}
	for i := 0; i < len(r.Fields); i += 2 {
		if _, there := found[0].Values[r.Fields[i]]; !there {
			flat = append(flat, r.Fields[i], r.Fields[i+1])
		}
	}
	if _, packed := found[0].Values[deadPacked]; packed || len(flat) == 0 {
		return "", false, ErrManyFields
	}
	args := []any{replayWindow.Milliseconds()}
	for _, s := range flat {
		args = append(args, s)
	}
	name := fmt.Sprintf("dead/%s/%s/%d/%s", r.From.Stream, r.From.Processor, r.From.Partition, r.ID)
	err = c.persist(ctx, func() error {
		var err error
		id, err = resendScript.Run(ctx, c.once,
			[]string{c.keys.Partition(r.Stream, r.Partition), c.keys.Once(r.Stream, r.Partition, name)}, args...).Text()
		return sorted(err)
	})
	if err != nil {
		return "", false, err
	}
	return id, true, c.DropDead(ctx, r.From, []string{r.ID})
}
