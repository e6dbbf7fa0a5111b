package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// ErrBehind is returned if Redis has forgotten commits of the ownership, or what was read or taken out of the partition
// since, as after a failover: the partition is to be taken over again.
var ErrBehind = errors.New("the server has forgotten what was done")

// A Commit says that an owner who reads by position is done with a partition up to an entry.
type Commit struct {
	Partition Partition
	Claim     Claim
	Number    int64 // of the commits of this ownership, from 1 on
	Committed string
	Read      int64 // entries ever appended up to Committed, less lost ones; -1: unknown

	TakenOut []string // since the last commit, by Park and DeadLetter: IDs up to Committed
	Large    bool     // the entry at Committed may be large

	Changes *Changes // that are stored in the same step, nil for none
	Epoch   int64    // of the ownership
	Boxes   int64    // so many of its outputs are for other slots; see Owner.Boxes
	Boxed   int64    // so many of those of earlier commits of this ownership
}

// A Place is up to where an owner has read a partition by position.
type Place struct {
	Partition Partition
	Claim     Claim
	Last      string // ID
	Count     int64  // entries ever appended up to Last, less lost ones; -1: unknown
}

// Continue reports, in their order, which of some places the server that a reader is connected to can be read on
// from. It cannot where it is another one, or has gone back, so that the place is none of its partition: that is to be
// taken over again. With an error nothing is known of a place. Use it after a new connection, and before what that
// brings: see redisconn.Reader.Connections.
func (c Owner) Continue(ctx context.Context, r *redisconn.Reader, places []Place) (out []bool, errs []error) {
	out, errs = make([]bool, len(places)), make([]error, len(places))
	for _, part := range c.Slots(len(places), partitionsPerTrip, func(i int) string { return places[i].Partition.Log }) {
		var keys []string
		var args []any
		for _, i := range part {
			p := places[i].Partition
			keys = append(keys, p.Log, p.Own)
			args = append(args, places[i].Claim.LockValue(), GroupName(p.Processor, places[i].Claim.Executor), places[i].Last, known(places[i].Count))
		}
		found, err := r.Script(ctx, continuesScript, keys, args...).BoolSlice()
		if err == nil && len(found) != len(part) {
			err = fmt.Errorf("reply for %d partitions, of %d", len(found), len(part))
		}
		for n, i := range part {
			if err != nil {
				errs[i] = places[i].Partition.wrap("read on", classify(err))
			} else {
				out[i] = found[n]
			}
		}
	}
	return out, errs
}

// Commit stores commits, in one round trip with a timeout of its own. Results are in their order: nil for
// stored, now or before; ErrFenced if another owner has the partition or the group is gone; ErrBehind;
// ErrWrongType. After any other error a commit may be stored or not: it is to be repeated, unchanged, before
// the next one of its partition. With a *TargetFullError it was not stored: AwaitRoom, then repeat it.
func (c Owner) Commit(ctx context.Context, commits []Commit) []error {
	ctx, cancel := context.WithTimeout(ctx, redisconn.Patience)
	defer cancel()
	calls, appends, errs := make([]*redisconn.Call, len(commits)), make([][]target, len(commits)), make([]error, len(commits))
	var sent []*redisconn.Call
	for i, one := range commits {
		p := one.Partition
		args := []any{one.Claim.LockValue(), GroupName(p.Processor, one.Claim.Executor), one.Number, one.Committed, known(one.Read), strings.Join(one.TakenOut, " "), one.Large}
		if one.Changes == nil {
			calls[i] = redisconn.ScriptCall(ctx, commitScript, []string{p.Log, p.Own}, args...)
		} else if calls[i], appends[i], errs[i] = c.changesCall(ctx, one, args); errs[i] != nil {
			continue
		}
		sent = append(sent, calls[i])
	}
	redisconn.Pipeline(ctx, c.NoRetry, sent)
	for i, one := range commits {
		if errs[i] == nil {
			said, err := calls[i].Reply.Text()
			if errs[i] = cmp.Or(classify(err), changesReply(said, appends[i], one)); errs[i] == nil {
				if why, behind := strings.CutPrefix(said, "BEHIND "); behind {
					errs[i] = fmt.Errorf("%w: %s", ErrBehind, why) // which is certain
				}
			}
		}
		errs[i] = one.Partition.wrap("commit "+one.Committed, errs[i])
	}
	return errs
}
