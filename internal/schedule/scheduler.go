package schedule

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"sync"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// Kind is the kind of a scheduler's stream; see store.Meta. The stream has the facts, and wakes its owners.
	Kind = "schedule"
	// Processor is the processor of the stream: the owner of a partition fires its triggers, applies its facts, and takes
	// its runs.
	Processor = "facts"
	// GateRuns is the gate of starts: the target SCHEDULER/runs.
	GateRuns = "runs"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	applyScript  = script("apply")
	takeScript   = script("take")
	beatScript   = script("beat")
	finishScript = script("finish")
	fireScript   = script("fire")
	dueScript    = script("due")
	freezeScript = script("freeze")
	thawScript   = script("thaw")
	defineScript = script("define")
	holdScript   = script("hold")
	adaptScript  = script("adapt")
	pruneScript  = script("prune")
	lookScript   = script("look")
	submitScript = script("submit")
	settleScript = script("settle")
	jobScript    = script("job")
	logScript    = script("log")
)

// lasting are the scripts whose effects another partition relies on, or who asked for an operation: where the app has replicas confirm
// writes, a failover must not forget these. Repeated they write something even if nothing changes, since that is what is confirmed.
var lasting = map[*store.Script]bool{
	applyScript: true, freezeScript: true, thawScript: true, defineScript: true, holdScript: true, adaptScript: true, submitScript: true, jobScript: true,
}

// script returns a script behind what all share.
func script(name string) *store.Script {
	text := ""
	for _, file := range []string{"cells", name} {
		source, err := sources.ReadFile("lua/" + file + ".lua")
		if err != nil {
			panic(err) // a name above is wrong
		}
		text += string(source)
	}
	return store.NewScript(text, store.Prelude, store.Fence, store.Times, store.Wake)
}

// PerCall is how many items a call has at most: more would hold the server for long.
const PerCall = 128

// A Scheduler is what is in Redis of one. Its methods block until the server has answered or the connection gives up, and may be
// called concurrently. They return store.ErrFenced to who does not own the partition any more.
type Scheduler struct {
	client  *store.Client
	name    string
	crashes int // that a run survives, and one more

	keys sync.Map // partition → []string, as cells.lua wants them
}

// New returns a scheduler; it does no I/O.
func New(c *store.Client, name string) *Scheduler {
	return &Scheduler{client: c, name: name, crashes: MaxCrashes}
}

// kinds are the keys of a partition behind its log and its ownership, in the order of cells.lua.
var kinds = []string{"sdef", "scell", "sgrid", "sready", "slater", "srun", "swait", "splace", "sseq", "srunner", "sheap", "srule"}

func (s *Scheduler) key(kind string, n int) string {
	k, ok := keys.KindOf(kind)
	if !ok {
		panic("no kind of keys " + kind)
	}
	return k.Key(s.client.Keys(), s.name, "", "", n)
}

func (s *Scheduler) keysOf(n int) []string {
	if all, ok := s.keys.Load(n); ok {
		return all.([]string)
	}
	p := s.client.Partition(s.name, Processor, n)
	all := []string{p.Log, p.Own}
	for _, kind := range kinds {
		all = append(all, s.key(kind, n))
	}
	s.keys.Store(n, all)
	return all
}

func (s *Scheduler) call(script *store.Script, n int, args []any) *store.ScriptCall {
	return &store.ScriptCall{Script: script, Keys: s.keysOf(n), Args: args, Confirm: lasting[script]}
}

// do makes one call.
func (s *Scheduler) do(ctx context.Context, script *store.Script, n int, args ...any) (*reply, error) {
	c := s.call(script, n, args)
	s.client.Run(ctx, c)
	return replyOf(c)
}

// A reply is a list of texts and numbers that is read from its front. The first that is not as expected is its error.
type reply struct {
	left []any
	err  error
}

func replyOf(c *store.ScriptCall) (*reply, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	switch list := c.Reply.(type) {
	case []any:
		return &reply{left: list}, nil
	case int64, string:
		return &reply{left: []any{list}}, nil
	}
	return nil, fmt.Errorf("unexpected reply %v", c.Reply)
}

func (r *reply) next() (one any) {
	if len(r.left) == 0 {
		r.fail("too short")
		return nil
	}
	one, r.left = r.left[0], r.left[1:]
	return one
}

func (r *reply) fail(what any) {
	if r.err == nil {
		r.err = fmt.Errorf("unexpected reply: %v", what)
	}
}

func (r *reply) more() bool { return r.err == nil && len(r.left) > 0 }

func (r *reply) text() string {
	one := r.next()
	switch one := one.(type) {
	case string:
		return one
	case int64:
		return strconv.FormatInt(one, 10)
	}
	r.fail(one)
	return ""
}

func (r *reply) number() int64 {
	n, err := strconv.ParseInt(r.text(), 10, 64)
	if err != nil {
		r.fail(err)
	}
	return n
}
