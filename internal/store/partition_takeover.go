package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// An Owner takes partitions over, keeps their leases, acks and trims them, and releases them.
// internal/worker uses it for each executor, and the reset command while it owns a partition.
type Owner struct{ *core }

// Found is the origin of a position.
type Found string

const (
	FoundGroup      Found = "group"       // from the consumer groups of earlier owners
	FoundCheckpoint Found = "checkpoint"  // from the ownership hash: no group was left
	FoundPlainGroup Found = "plain group" // from a group named like the processor, of Python's runnel
	FoundStart      Found = "start"       // the processor never ran here
	FoundReset      Found = "reset"       // it ran here, but the partition is another one: from its beginning
)

// A Takeover is where an ownership begins.
type Takeover struct {
	Epoch     int64
	Committed string // every entry up to this ID is done, none behind it has been delivered to us
	Read      int64  // number of entries ever appended up to the committed position, -1 when unknown
	Found     Found
	Delivered string // the last entry that an earlier owner was given: up to it, events may be repeats

	Crashed         bool        // the owner before did not release the partition: it died or lost it
	Again           bool        // nor did the one before that, and the suspect is the same
	Suspect         string      // the unacked event that such an owner was at, "" if none is known
	Deaths          int         // how many owners in a row ended at the suspect; all but the first had begun it
	SetAside        []string    // what was taken out of the partition behind Committed, in any order: it comes again, only to be acked
	Quarantine      *Quarantine // nil: the partition is not quarantined
	Skip            string      // the event that an operator wants skipped, "" for none
	SkipEnd         string      // or the end of a row, by its EndName
	OperatorVersion int64       // as in LeaseResult
	Parked          int64       // number of parked events
	Time            int64       // that the partition has come to by commits with changes, in milliseconds
	Now             int64       // the server's clock, in milliseconds

	Lost   int64 // entries ever removed before they were delivered; they count as read
	Gone   int64 // entries ever removed while they were pending
	Missed int64 // how many of both this takeover found

	Forgotten *Forgotten // what this takeover found to be forgotten by Redis, nil for nothing
}

// Lock tries once to obtain a partition's lock for an ownership. If another owner has it, Lock
// returns ErrHeld and bounds its remaining life to foreign, so that a step of the server's clock
// cannot keep a dead owner's lock alive. After another error, Lock may be called again with the
// same ownership.
func (c Owner) Lock(ctx context.Context, p Partition, t Claim, expiry, foreign time.Duration) error {
	err := c.obtain(ctx, p.Lock, t.LockValue(), expiry)
	if errors.Is(err, ErrHeld) && foreign > 0 {
		if err := c.Batched.Run(ctx, boundScript, []string{p.Lock, p.Own}, milliseconds(foreign)).Err(); err != nil {
			if err = classify(err); errors.Is(err, redisconn.ErrWrongType) { // what is no lock has no holder
				return p.failed("lock", err)
			}
			return p.wrap("lock", fmt.Errorf("%w; bounding it: %w", ErrHeld, err))
		}
	}
	return p.failed("lock", err)
}

// obtain makes one try for a lock.
func (c *core) obtain(ctx context.Context, key, value string, expiry time.Duration) error {
	_, err := redislock.Obtain(ctx, c.Batched, key, expiry, &redislock.Options{Token: value})
	switch {
	case errors.Is(err, redislock.ErrNotObtained):
		return ErrHeld
	case redisconn.ReplyHas(err, "OOM "):
		return c.obtainInNeed(ctx, key, value, expiry)
	}
	return classify(err)
}

// obtainInNeed is obtain on a server whose memory is full.
func (c *core) obtainInNeed(ctx context.Context, key, value string, expiry time.Duration) error {
	obtained, err := obtainScript.Run(ctx, c.NoRetry, []string{key}, value, milliseconds(expiry)).Bool()
	if err == nil && !obtained {
		return ErrHeld
	}
	return classify(err)
}

// Takeover makes the holder of the lock the owner of the partition: once it returns, earlier owners
// can neither read nor ack. start is the position of a processor that never ran here, an entry ID
// or "$"; largest is the largest epoch that the caller ever saw for the partition. Takeover returns
// ErrFenced if the lock does not hold the ownership's value, or if the ownership's group was
// destroyed since. It returns ErrNotReplicated if the takeover was done, but a failover may lose
// it: the caller may not act as the owner yet. It retries while its outcome is unknown and ctx
// lives, and may be repeated.
func (c Owner) Takeover(ctx context.Context, p Partition, t Claim, start string, largest int64) (Takeover, error) {
	if start == "" {
		start = "0-0"
	}
	var pos Takeover
	err := persist(ctx, func() error {
		reply, err := c.BatchedReplicated.Run(ctx, takeoverScript, []string{p.Log, p.Lock, p.Own, p.Retry},
			p.Processor, t.Executor, t.LockValue(), start, largest, t.Expiry.Milliseconds(), known(cmp.Or(t.Reach, -1))).Slice()
		if err == nil {
			pos, err = parseTakeover(reply)
		}
		return classify(err)
	})
	return pos, p.failed("takeover", err)
}

func parseTakeover(reply []any) (Takeover, error) {
	f := fieldsOf(reply)
	pos := Takeover{
		Epoch: f.number("epoch"), Committed: f.text("floor"), Read: f.number("read"), Found: Found(f.text("found")),
		Delivered: f.text("given"), Crashed: f.number("unclean") > 0, Again: f.number("unclean") > 1, Suspect: f.text("suspect"), Deaths: int(f.number("deaths")),
		SetAside: strings.Fields(f.text("aside")), OperatorVersion: f.number("poke"), Parked: f.number("parked"), Lost: f.number("lost"), Gone: f.number("gone"), Missed: f.number("missed"), Now: f.number("now"), Time: f.number("time"),
	}
	if f.err != nil {
		return Takeover{}, f.err
	}
	var err error
	if pos.Quarantine, err = parseQuarantine(f.text("quarantine")); err != nil {
		return pos, err
	}
	if pos.Skip = f.text("skip"); strings.HasPrefix(pos.Skip, endPrefix) {
		pos.Skip, pos.SkipEnd = "", pos.Skip
	}
	if pos.Forgotten = parseForgotten(f.text("forgotten")); pos.Forgotten != nil && pos.Forgotten.Epoch != pos.Epoch {
		pos.Forgotten = nil
	}
	return pos, f.err
}

// Unlock releases a partition's lock if it still holds the ownership's value; else it does nothing.
// It is for an owner that has ended everything and flushed its acks. It may be repeated.
func (c Owner) Unlock(ctx context.Context, p Partition, t Claim) error {
	_, err := c.unlock(ctx, t, []string{p.Lock, p.Own})
	return p.wrap("unlock", err)
}

// Release is Unlock by an owner that knows its committed position, so that the next takeover need
// not find it out, and what it has begun behind it. It reports whether the lock was there.
func (c Owner) Release(ctx context.Context, r LeaseRequest) (held bool, err error) {
	position := []any{r.Begun}
	if r.Read >= 0 {
		position = append(position, r.Committed, r.Read)
	}
	held, err = c.unlock(ctx, r.Claim, []string{r.Partition.Lock, r.Partition.Own}, position...)
	return held, r.Partition.wrap("unlock", err)
}

// Abandon is Unlock by an owner that may have begun what it did not end: the next takeover knows.
func (c Owner) Abandon(ctx context.Context, p Partition, t Claim) error {
	_, err := c.unlock(ctx, t, []string{p.Lock})
	return p.wrap("abandon", err)
}

func (c Owner) unlock(ctx context.Context, t Claim, keys []string, position ...any) (held bool, err error) {
	err = persist(ctx, func() error {
		n, err := c.Batched.Run(ctx, unlockScript, keys, append([]any{t.LockValue()}, position...)...).Int64()
		held = n == 1
		return classify(err)
	})
	return held, err
}
