package store

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A call is one command of a pipeline: it queues itself, as often as it must.
type call struct {
	script *redis.Script // nil for a plain command
	queue  func(redis.Pipeliner) *redis.Cmd
	whole  func(redis.Pipeliner) *redis.Cmd // with the script's text
	reply  *redis.Cmd
	last   bool       // it is about the calls before it, and repeated with any of them
	before *redis.Cmd // its reply to the first try, where it was repeated
}

func scriptCall(ctx context.Context, s *redis.Script, keys []string, args ...any) *call {
	return &call{
		script: s,
		queue:  func(p redis.Pipeliner) *redis.Cmd { return s.EvalSha(ctx, p, keys, args...) },
		whole:  func(p redis.Pipeliner) *redis.Cmd { return s.Eval(ctx, p, keys, args...) },
	}
}

func plainCall(ctx context.Context, args ...any) *call {
	return &call{queue: func(p redis.Pipeliner) *redis.Cmd { return p.Do(ctx, args...) }}
}

// pipeline runs the calls in one round trip, and those whose script the server did not
// know in a second one, with its text. EVAL needs no right beside those of the script,
// as SCRIPT LOAD would. Each call's reply holds its own error.
func pipeline(ctx context.Context, rdb *redis.Client, calls []*call) {
	again := roundTrip(ctx, rdb, calls)
	for _, c := range again {
		if c.whole != nil {
			c.queue = c.whole
		}
		c.before = c.reply
	}
	roundTrip(ctx, rdb, again)
}

// inTurns is pipeline with at most so many calls in a round trip: the server runs all that
// it reads at once before it serves another client.
func inTurns(ctx context.Context, rdb *redis.Client, calls []*call, most int) {
	for some := range slices.Chunk(calls, most) {
		pipeline(ctx, rdb, some)
	}
}

// roundTrip returns the calls whose script the server does not know.
func roundTrip(ctx context.Context, rdb *redis.Client, calls []*call) (forgotten []*call) {
	if len(calls) == 0 {
		return nil
	}
	p := rdb.Pipeline()
	for _, c := range calls {
		c.reply = c.queue(p)
	}
	p.Exec(ctx) // every reply carries its error
	for _, c := range calls {
		if c.whole != nil && redis.HasErrorPrefix(c.reply.Err(), "NOSCRIPT") || c.last && len(forgotten) > 0 {
			forgotten = append(forgotten, c)
		}
	}
	return forgotten
}
