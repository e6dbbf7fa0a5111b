package redisconn

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A Call is one command of a pipeline. Reply is set by Pipeline, and holds the command's error.
type Call struct {
	script *redis.Script // nil for a plain command
	queue  func(redis.Pipeliner) *redis.Cmd
	whole  func(redis.Pipeliner) *redis.Cmd // with the script's text
	Reply  *redis.Cmd
	last   bool       // it depends on the calls before it, and is repeated with any of them
	before *redis.Cmd // its reply to the first try, where it was repeated
}

// ScriptCall returns a call of a script, which is sent with its text if the server does not know it.
func ScriptCall(ctx context.Context, s *redis.Script, keys []string, args ...any) *Call {
	return &Call{
		script: s,
		queue:  func(p redis.Pipeliner) *redis.Cmd { return s.EvalSha(ctx, p, keys, args...) },
		whole:  func(p redis.Pipeliner) *redis.Cmd { return s.Eval(ctx, p, keys, args...) },
	}
}

// PlainCall returns a call of a command that is no script.
func PlainCall(ctx context.Context, args ...any) *Call {
	return &Call{queue: func(p redis.Pipeliner) *redis.Cmd { return p.Do(ctx, args...) }}
}

// Pipeline runs the calls in one round trip, and those whose script the server did not
// know in a second one, with the script's text. EVAL needs no right beside those of the
// script, as SCRIPT LOAD would. Each call's reply holds its own error.
func Pipeline(ctx context.Context, rdb *redis.Client, calls []*Call) {
	again := roundTrip(ctx, rdb, calls)
	for _, c := range again {
		if c.whole != nil {
			c.queue = c.whole
		}
		c.before = c.Reply
	}
	roundTrip(ctx, rdb, again)
}

// PipelineInTurns is Pipeline with a bound on the calls in a round trip: the server runs
// everything that it reads at once before it serves another client.
func PipelineInTurns(ctx context.Context, rdb *redis.Client, calls []*Call, most int) {
	for some := range slices.Chunk(calls, most) {
		Pipeline(ctx, rdb, some)
	}
}

// roundTrip returns the calls whose script the server does not know.
func roundTrip(ctx context.Context, rdb *redis.Client, calls []*Call) (forgotten []*Call) {
	if len(calls) == 0 {
		return nil
	}
	p := rdb.Pipeline()
	for _, c := range calls {
		c.Reply = c.queue(p)
	}
	p.Exec(ctx) // every reply carries its error
	for _, c := range calls {
		if c.whole != nil && redis.HasErrorPrefix(c.Reply.Err(), "NOSCRIPT") || c.last && len(forgotten) > 0 {
			forgotten = append(forgotten, c)
		}
	}
	return forgotten
}
