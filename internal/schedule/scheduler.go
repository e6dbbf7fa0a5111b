package schedule

import (
	"context"
	"embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

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

// scripts are by name what lua has, each behind cells.lua.
var scripts = store.ReadScripts(sources, "cells", store.Prelude, store.Fence, store.Times, store.Wake)

// lasting are the scripts whose effects another partition relies on, or who asked for an operation: where the app has replicas confirm
// writes, a failover must not forget these. Repeated they write something even if nothing changes, since that is what is confirmed.
var lasting = map[string]bool{"apply": true, "freeze": true, "thaw": true, "define": true, "adapt": true, "submit": true, "jobs": true}

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
	return keys.MustKind(kind).Key(s.client.Keys(), s.name, "", "", n)
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

// inTrip calls a script for items of partitions, at most PerCall in each call, which asks for what ask returns, and hands on the answers.
func inTrip[T, A any](ctx context.Context, s *Scheduler, script string, by map[int][]T, ask func(some []T) any, done func(some []T, answer A, err error)) {
	var parts [][]T
	var calls []*store.ScriptCall
	for n, all := range by {
		for some := range slices.Chunk(all, PerCall) {
			parts, calls = append(parts, some), append(calls, s.call(script, n, ask(some)))
		}
	}
	s.client.Run(ctx, calls...)
	for i, c := range calls {
		var answer A
		err := read(c, &answer)
		done(parts[i], answer, err)
	}
}

// pipelined asks each partition in one round trip.
func (s *Scheduler) pipelined(ctx context.Context, partitions int, ask func(pipe redis.Pipeliner, n int)) ([]redis.Cmder, error) {
	pipe := s.client.Retrying.Pipeline()
	for n := range partitions {
		ask(pipe, n)
	}
	return pipe.Exec(ctx)
}

// alone asks for nothing but items.
func alone[T any](some []T) any { return some }

// obj is what a script is asked for.
type obj = map[string]any

// call returns a call of a script, with keys behind those of the partition.
func (s *Scheduler) call(script string, n int, ask any, more ...string) *store.ScriptCall {
	text, _ := json.Marshal(ask) // nothing that is asked for has a field that cannot be
	own := s.keysOf(n)
	return &store.ScriptCall{Script: scripts[script], Keys: append(own[:len(own):len(own)], more...), Args: []any{text}, Confirm: lasting[script]}
}

// do makes one call, and reads its answer.
func (s *Scheduler) do(ctx context.Context, script string, n int, ask, answer any, more ...string) error {
	c := s.call(script, n, ask, more...)
	s.client.Run(ctx, c)
	return read(c, answer)
}

// read reads the answer of a call, nil for none.
func read(c *store.ScriptCall, answer any) error {
	text, _ := c.Reply.(string)
	if c.Err != nil || answer == nil || text == "" || text == "[]" { // an empty table, as some servers write it
		return c.Err
	}
	return json.Unmarshal([]byte(text), answer)
}
