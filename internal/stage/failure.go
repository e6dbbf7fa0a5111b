package stage

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

// A Failure is what is stored of a visit that failed. Times are in ms by Redis' clock.
type Failure struct {
	Attempts int    `json:"n"`
	Crashes  int    `json:"crashes,omitempty"` // in a row, at last
	First    int64  `json:"first,omitempty"`
	Last     int64  `json:"last,omitempty"`
	Error    string `json:"err,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Version  int64  `json:"version,omitempty"` // of the entity
	Epoch    int64  `json:"epoch,omitempty"`   // of the ownership
	Dead     bool   `json:"dead,omitempty"`
}

// ReasonLoop is the reason of a touch that waits because stages have changed its entity too often. Other
// reasons are those of retryqueue.
const ReasonLoop = "loop"

const errorBytes = 4 << 10 // kept of an error's text

// Text returns the failure as it is stored, its error cut to 4 KiB.
func (f Failure) Text() string {
	f.Error = strings.ToValidUTF8(f.Error[:min(len(f.Error), errorBytes)], "")
	text, _ := json.Marshal(f) // numbers and texts
	return string(text)
}

// ParseFailure is the inverse of Text.
func ParseFailure(text string) (f Failure, err error) {
	err = json.Unmarshal([]byte(text), &f)
	return f, err
}

// A VisitOf is what is known of an entity's visit of a stage, or of its touch.
type VisitOf struct {
	Stage, ID string
	Due       int64 // in ms since 1970, 0 if none waits
	Died      int64 // 0: it is not dead
	Running   bool
	Failure   *Failure // nil: none
}

// failedAtOnce is how many failures are read in one step.
const failedAtOnce = 200

// Failed calls add with the failed visits of a stage, or of Touch, in a partition, until it returns false.
// Those that come and go meanwhile may be missing; one may be there twice.
func (s *Set) Failed(ctx context.Context, n int, stage string, add func(VisitOf) bool) error {
	for cursor := uint64(0); ; {
		fields, next, err := s.client.Retrying.HScan(ctx, s.key("visitfail", n, ""), cursor, stage+" *", failedAtOnce).Result()
		var found []VisitOf
		for i := 0; i+1 < len(fields); i += 2 {
			found = append(found, VisitOf{Stage: stage, ID: strings.TrimPrefix(fields[i], stage+" ")})
		}
		if err == nil {
			err = s.look(ctx, n, found)
		}
		if err != nil {
			return err
		}
		for _, v := range found {
			if v.Failure != nil && !add(v) {
				return nil
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// VisitsOf returns the visits that an entity has, its touch first.
func (s *Set) VisitsOf(ctx context.Context, n int, id string) ([]VisitOf, error) {
	all := []VisitOf{{Stage: Touch, ID: id}}
	for _, stage := range s.stages {
		all = append(all, VisitOf{Stage: stage, ID: id})
	}
	err := s.look(ctx, n, all)
	return slices.DeleteFunc(all, func(v VisitOf) bool { return v == VisitOf{Stage: v.Stage, ID: id} }), err
}

// look fills in what is known of visits, by their Stage and ID.
func (s *Set) look(ctx context.Context, n int, visits []VisitOf) error {
	var calls []*redisconn.Call
	for _, v := range visits {
		field := v.Stage + " " + v.ID
		calls = append(calls, redisconn.PlainCall(ctx, "ZSCORE", s.queue(n, v.Stage), v.ID), redisconn.PlainCall(ctx, "ZSCORE", s.dead(n, v.Stage), v.ID),
			redisconn.PlainCall(ctx, "HGET", s.key("visitrun", n, ""), field), redisconn.PlainCall(ctx, "HGET", s.key("visitfail", n, ""), field))
	}
	redisconn.Pipeline(ctx, s.client.Retrying, calls)
	for i := range visits {
		v, replies := &visits[i], calls[4*i:4*i+4]
		v.Due, v.Died, v.Running = scoreOf(replies[0].Reply), scoreOf(replies[1].Reply), replies[2].Reply.Err() == nil
		switch text, err := replies[3].Reply.Text(); {
		case err == nil:
			f, err := ParseFailure(text)
			if err != nil {
				f.Error = err.Error()
			}
			v.Failure = &f
		case !errors.Is(err, redis.Nil):
			return err
		}
	}
	return nil
}

// scoreOf returns the reply to ZSCORE, 0 for none: a text, or a number where the protocol has one.
func scoreOf(reply *redis.Cmd) int64 {
	switch score := reply.Val().(type) {
	case float64:
		return int64(score)
	case string:
		f, _ := strconv.ParseFloat(score, 64)
		return int64(f)
	}
	return 0
}

// What Mend does with failed visits.
const (
	MendNow   = "now"   // one that waits is due now
	MendDrop  = "drop"  // one that waits is given up
	MendRetry = "retry" // a dead one is due now, with attempt 1
	MendBury  = "bury"  // a dead one is given up
)

// Mend does something with failed visits of a stage in a partition, at most 128, and reports for each
// whether it was in that state. It may be repeated.
func (s *Set) Mend(ctx context.Context, n int, stage, what string, ids ...string) ([]bool, error) {
	p := s.place(n)
	args := []any{stage, what}
	for _, id := range ids {
		args = append(args, id)
	}
	c := &store.ScriptCall{
		Script: mendScript, Args: args, Confirm: true,
		Keys: []string{s.queue(n, stage), s.dead(n, stage), s.key("visitrun", n, ""), s.key("visitfail", n, ""), p.Own, p.Log},
	}
	if s.client.Run(ctx, c); c.Err != nil {
		return nil, c.Err
	}
	texts, err := textsOf(c.Reply)
	did := make([]bool, len(texts))
	for i, text := range texts {
		did[i] = text == "1"
	}
	return did, err
}
