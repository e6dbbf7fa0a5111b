package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Fields of a dead letter, beside those of the event.
const (
	deadPrefix    = "__dead."
	deadID        = deadPrefix + "id"
	deadPartition = deadPrefix + "partition"
	deadKey       = deadPrefix + "key"
	deadAttempts  = deadPrefix + "attempts"
	deadFirst     = deadPrefix + "first"
	deadLast      = deadPrefix + "last"
	deadError     = deadPrefix + "error"
	deadReason    = deadPrefix + "reason"
	deadEpoch     = deadPrefix + "epoch"
	deadPacked    = deadPrefix + "packed" // all fields of an event that has too many for a script
)

// A DeadLetter is an event moved aside after its last attempt.
type DeadLetter struct {
	ID          string          // of the dead letter
	Entry       redisconn.Entry // the event, with the ID that it had
	Partition   int
	Key         string
	Attempts    int
	First, Last time.Time // failure; zero for none
	Error       string    // of the last failure, cut to 4 KiB
	Reason      string    // why there was no other attempt
	Epoch       int64     // of the ownership that gave up on it
	Begun       int       // Attempts of the RetryState that it had, 0 for none; not stored
}

// DeadLetter makes a dead letter of an event of the ownership, in one step with its ack or, if it
// is parked, its removal from there. It ignores d's ID and Partition. It returns ErrFenced if the
// ownership is over. It retries while its outcome is unknown and ctx lives, and may be repeated:
// there is one dead letter, whatever happens.
func (c RetryStore) DeadLetter(ctx context.Context, p Partition, t Claim, d DeadLetter) error {
	d.Partition = p.Number
	args := appendTexts([]any{t.LockValue(), GroupName(p.Processor, t.Executor), d.Entry.ID, d.Begun}, d.Fields())
	return p.failed("dead letter of event "+entryid.EventID(p.Number, d.Entry.ID), c.persistScript(ctx, deadScript,
		[]string{p.Log, p.Lock, p.Parked, p.Retry, p.Dead, p.Own}, args...))
}

// Fields returns the fields and values of the dead letter as it is stored.
func (d *DeadLetter) Fields() []string {
	flat := flatten(d.Entry.Values)
	if len(flat) > fieldsPerCall {
		flat = []string{deadPacked, pack(flat)}
	}
	return append(flat,
		deadID, d.Entry.ID, deadPartition, strconv.Itoa(d.Partition), deadKey, d.Key,
		deadAttempts, strconv.Itoa(d.Attempts), deadFirst, milli(d.First), deadLast, milli(d.Last),
		deadError, cut(d.Error), deadReason, d.Reason, deadEpoch, strconv.FormatInt(d.Epoch, 10))
}

// milli returns a time as it is stored: milliseconds, "0" for none.
func milli(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// DeadLetters returns the dead letters of a partition behind an ID ("" for the
// first), at most count, in the order in which they died.
func (c Viewer) DeadLetters(ctx context.Context, p Partition, after string, count int) ([]DeadLetter, error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	entries, err := c.Retrying.XRangeN(ctx, p.Dead, from, "+", int64(count)).Result()
	if err != nil {
		return nil, p.wrap("dead letters", classify(err))
	}
	letters := make([]DeadLetter, len(entries))
	for i, e := range entries {
		if letters[i], err = parseDead(e, p.Number); err != nil {
			return nil, p.wrap("dead letters", err)
		}
	}
	return letters, nil
}

// LastDead returns the newest dead letter of a partition, and whether there is one.
func (c Viewer) LastDead(ctx context.Context, p Partition) (DeadLetter, bool, error) {
	entries, err := c.Retrying.XRevRangeN(ctx, p.Dead, "+", "-", 1).Result()
	if err != nil || len(entries) == 0 {
		return DeadLetter{}, false, p.wrap("dead letters", classify(err))
	}
	d, err := parseDead(entries[0], p.Number)
	return d, err == nil, p.wrap("dead letters", err)
}

// parseDead parses a dead letter. One that another program wrote lacks most of the fields.
func parseDead(e redisconn.Entry, partition int) (DeadLetter, error) {
	text := func(name string) string { return textOf(e.Values, name) }
	number := func(name string) int64 { n, _ := strconv.ParseInt(text(name), 10, 64); return n }
	moment := func(name string) (t time.Time) {
		if ms := number(name); ms != 0 {
			t = entryid.MomentOf(ms)
		}
		return t
	}
	d := DeadLetter{
		ID: e.ID, Entry: redisconn.Entry{ID: text(deadID), Values: map[string]any{}}, Partition: partition, Key: text(deadKey),
		Attempts: int(number(deadAttempts)), First: moment(deadFirst), Last: moment(deadLast),
		Error: text(deadError), Reason: text(deadReason), Epoch: number(deadEpoch),
	}
	if packed, ok := e.Values[deadPacked].(string); ok {
		var err error
		if d.Entry.Values, err = unpack(packed); err != nil {
			return d, fmt.Errorf("dead letter %s: %w", e.ID, err)
		}
	}
	for name, value := range e.Values {
		if !strings.HasPrefix(name, deadPrefix) {
			d.Entry.Values[name] = value
		}
	}
	return d, nil
}

// DropDead deletes dead letters for good. It may be repeated.
func (c Operator) DropDead(ctx context.Context, p Partition, ids []string) error {
	for some := range slices.Chunk(ids, statesAtOnce) {
		err := persist(ctx, func() error { return classify(c.NoRetry.XDel(ctx, p.Dead, some...).Err()) })
		if err != nil {
			return p.wrap("drop dead letters", err)
		}
	}
	return nil
}
