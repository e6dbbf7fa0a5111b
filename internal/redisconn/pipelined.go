package redisconn

import (
	"context"

	"github.com/runnel-go/runnel/internal/groupcommit"

	"github.com/redis/go-redis/v9"
)

// Maximum of scripts in a round trip. Redis runs the commands of one connection in a row
// while others wait. So fewer takeovers share a trip, as they read pending entries.
const (
	callsTogether     = 128
	takeoversTogether = 12
)

// A Pipelined client lets scripts that goroutines call at the same time share round
// trips; see groupcommit. A worker takes over and releases each of its partitions in a
// goroutine of its own: one by one a thousand of them would wait in turn for the large
// reads of those that are owned already.
type Pipelined struct {
	*redis.Client // so that it is a redis.Scripter; of its methods only EvalSha is pipelined
	cluster       *cluster
	most          int // in a round trip
	make          func(context.Context, []*Call) error
	calls         PerNode[*Call, error]
}

// newPipelined returns a client that sends calls by make. The error of make is that of
// the calls that were executed. In a cluster, calls for different nodes are not made
// together.
func newPipelined(rdb *redis.Client, k *cluster, most int, make func(context.Context, []*Call) error) *Pipelined {
	p := &Pipelined{Client: rdb, cluster: k, most: most, make: make}
	p.calls.Open = p.newGroup
	return p
}

func (p *Pipelined) newGroup() *groupcommit.Group[*Call, error] {
	return &groupcommit.Group[*Call, error]{
		Send: func(ctx context.Context, calls []*Call) []error {
			weak := p.make(ctx, calls)
			errs := make([]error, len(calls))
			for i, c := range calls {
				if weak != nil && c.Reply.Err() == nil {
					c.Reply.SetErr(weak)
				}
				errs[i] = c.Reply.Err()
			}
			return errs
		},
		Unsent: func(err error) error { return err },
		Weigh:  func(calls []*Call) (groupcommit.Load, bool) { return groupcommit.Load{Items: len(calls)}, false },
		Limit:  groupcommit.Load{Items: p.most},
	}
}

// Run runs a script, and loads it if the server does not know it.
func (p *Pipelined) Run(ctx context.Context, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	return p.do(ctx, keys, ScriptCall(ctx, s, keys, args...))
}

// EvalSha runs a script that the server should know.
func (p *Pipelined) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return p.do(ctx, keys, &Call{queue: func(pipe redis.Pipeliner) *redis.Cmd { return pipe.EvalSha(ctx, sha, keys, args...) }})
}

func (p *Pipelined) do(ctx context.Context, keys []string, c *Call) *redis.Cmd {
	var n *node
	if p.cluster != nil && len(keys) > 0 {
		n = p.cluster.known(keys[0])
	}
	answers, err := p.calls.of(n).Do(ctx, []*Call{c})
	if err == nil && c.Reply == nil {
		err = answers[0] // it was not sent
	}
	if err != nil {
		reply := redis.NewCmd(ctx) // its own may still be written to
		reply.SetErr(err)
		return reply
	}
	return c.Reply
}
