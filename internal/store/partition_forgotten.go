package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/redisconn"
)

// forgottenFor is how long a View shows what Redis has forgotten.
const forgottenFor = 24 * time.Hour

// askedPerScript bounds the server time of one script, where a stream has many processors.
const askedPerScript = 64

// What Redis may forget.
const (
	// ForgottenPartition means that a partition was deleted, renamed, evicted or flushed,
	// though the positions in it were kept.
	ForgottenPartition = "partition"
	// ForgottenState means that Redis went back to an earlier state, as after a restart
	// with an older copy or none, or a failover to a replica that was behind.
	ForgottenState = "state"
)

// A Forgotten is what Redis has forgotten of a partition: entries that were there behind From, up
// to To at least. Nothing is known of what came behind To.
type Forgotten struct {
	Version int    `json:"v"`
	What    string `json:"what"`  // ForgottenPartition or ForgottenState
	From    string `json:"from"`  // entry ID
	To      string `json:"to"`    // entry ID, "" where none is known
	Epoch   int64  `json:"epoch"` // of the owner that reported it
	At      int64  `json:"at"`    // ms
}

// Error describes what may be gone.
func (f *Forgotten) Error() string {
	behind := "behind " + f.From
	if f.To != "" && f.To != f.From {
		behind += ", which reached " + f.To + " at least,"
	}
	if f.What == ForgottenPartition {
		return "it was deleted, renamed, evicted or flushed: what was sent " + behind + " and not processed is gone"
	}
	return "Redis went back to an older state, as after a restart with an older copy, a failover or FLUSHALL: what was sent " + behind + " may be gone, or come again"
}

// parseForgotten parses what a script stored, nil if that is not possible.
func parseForgotten(text string) *Forgotten {
	f := new(Forgotten)
	if text == "" || json.Unmarshal([]byte(text), f) != nil || f.Version != 1 {
		return nil
	}
	return f
}

// since returns f if it was reported at t or later, else nil.
func (f *Forgotten) since(t time.Time) *Forgotten {
	if f == nil || time.UnixMilli(f.At).Before(t) {
		return nil
	}
	return f
}

// Known is what an owner knew of its partition when it lost it.
type Known struct {
	Place Partition
	Group string
	Epoch int64
	Given string // the last entry that it was given, or that it had done
	Back  string // the committed position that it found stored instead of Given, "" if it found none
}

// Forgotten finds out what Redis has forgotten of what owners knew, and stores it for
// View.Forgotten. A result is nil for nothing, or if the next owner has reported it. Results are in
// the order of known. It may be repeated.
func (c Owner) Forgotten(ctx context.Context, known []Known) ([]*Forgotten, error) {
	parts := c.Slots(len(known), askedPerScript, func(i int) string { return known[i].Place.Log })
	calls := make([]*redisconn.Call, len(parts))
	for n, part := range parts {
		var keys []string
		var args []any
		for _, i := range part {
			keys = append(keys, known[i].Place.Log, known[i].Place.Own)
			args = append(args, known[i].Group, known[i].Epoch, known[i].Given, known[i].Back)
		}
		calls[n] = redisconn.ScriptCall(ctx, forgottenScript, keys, args...)
	}
	redisconn.Pipeline(ctx, c.Retrying, calls)
	out := make([]*Forgotten, len(known))
	for n, part := range parts {
		texts, err := calls[n].Reply.StringSlice()
		if err == nil && len(texts) != len(part) {
			err = fmt.Errorf("reply for %d partitions, of %d", len(texts), len(part))
		}
		if err != nil {
			return nil, known[part[0]].Place.wrap("what Redis forgot", classify(err))
		}
		for i, at := range part {
			out[at] = parseForgotten(texts[i])
		}
	}
	return out, nil
}
