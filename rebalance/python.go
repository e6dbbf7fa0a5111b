package rebalance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A PythonError reports that executors of Python's runnel process the stream under
// this processor's name. Neither language can join the other's membership.
type PythonError struct{ Heartbeats map[string]time.Duration } // remaining lives, by executor ID

// Error names the executors and the way to stop them.
func (e *PythonError) Error() string {
	var who []string
	for _, id := range slices.Sorted(maps.Keys(e.Heartbeats)) {
		who = append(who, fmt.Sprintf("%s (its heartbeat expires in %v)", id, e.Heartbeats[id].Round(time.Second)))
	}
	return fmt.Sprintf("Python's runnel runs it, executor %s: stop it there first, or give this processor another name; "+
		"one that was killed counts until its heartbeat has expired", strings.Join(who, ", "))
}

// parsePython reads a membership as Python's runnel stores it: an object by executor
// ID, without a version. Workers that have stopped leave {} behind, killed ones their
// entries. ok is false for anything else.
func parsePython(data []byte) (executors map[string]Executor, ok bool) {
	var in map[string]*struct {
		JoinedAt   *string `json:"joined_at"`
		Partitions *[]int  `json:"partitions"`
	}
	if json.Unmarshal(data, &in) != nil || in == nil {
		return nil, false
	}
	executors = make(map[string]Executor, len(in))
	for id, e := range in {
		if e == nil || e.JoinedAt == nil || e.Partitions == nil || id == "" {
			return nil, false
		}
		at, err := time.Parse("2006-01-02T15:04:05", *e.JoinedAt) // without a zone: UTC
		if err != nil || !isMoment(at.UnixMilli()) {
			return nil, false
		}
		executors[id] = Executor{JoinedAt: at, Partitions: slices.Sorted(slices.Values(*e.Partitions))}
	}
	return executors, true
}

// Vacant returns nil if a processor of this program may join the stored membership, a *PythonError
// if executors of Python's runnel live in it, or Parse's error. It changes nothing.
func Vacant(ctx context.Context, s Store) error {
	value, err := s.Load(ctx)
	if err != nil {
		return err
	}
	g, err := ParseStored(s.Key(), value)
	if err != nil {
		return err
	}
	return g.vacant(ctx, s)
}

func (g Group) vacant(ctx context.Context, s Store) error {
	if len(g.Python) == 0 {
		return nil
	}
	// Only Python knows how long its heartbeats may live: none is cut.
	alive, err := s.Alive(ctx, slices.Sorted(maps.Keys(g.Python)), math.MaxInt64)
	if err != nil || len(alive) == 0 {
		return err
	}
	return &PythonError{alive}
}
