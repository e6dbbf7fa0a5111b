package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/rebalance"
)

// A GroupState is a consumer group that belongs to no registered processor. Entries that it has not
// acked are not trimmed until an operator removes the group.
type GroupState struct {
	Group      string `json:"group"` // its name in Redis
	Who        string `json:"who"`
	Alive      bool   `json:"alive"`      // a worker, in Go or Python, runs it
	Partitions int    `json:"partitions"` // that have the group
	Pending    int64  `json:"pending"`    // delivered, not acked
	Lag        int64  `json:"lag"`        // unacked entries, with the pending; -1: Redis does not know
	Delivered  string `json:"delivered"`  // last ID delivered, in the partition where it is furthest behind
	Needs      string `json:"needs"`      // first unacked ID there
	Partition  int    `json:"partition"`  // that partition

	Processor string `json:"processor,omitempty"` // unregistered processor whose owner has the group
}

// Groups returns the consumer groups of a stream that belong to no registered processor, by name.
func Groups(ctx context.Context, c *store.Client, stream string, m store.Meta) ([]GroupState, error) {
	all, err := c.ForeignGroups(ctx, stream, m)
	if err != nil {
		return nil, err
	}
	found := map[string]*GroupState{}
	for n, groups := range all {
		for _, g := range groups {
			s := found[g.Name]
			if s == nil {
				s = &GroupState{Group: g.Name, Delivered: g.Delivered, Needs: g.Needs, Partition: n, Processor: g.Processor}
				found[g.Name] = s
			}
			if entryid.Compare(g.Needs, s.Needs) < 0 {
				s.Delivered, s.Needs, s.Partition = g.Delivered, g.Needs, n
			}
			s.Partitions++
			s.Pending += g.Pending
			if g.Lag < 0 || s.Lag < 0 {
				s.Lag = -1
			} else {
				s.Lag += g.Pending + g.Lag
			}
		}
	}
	out := []GroupState{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if err := found[name].find(ctx, c, stream); err != nil {
			return nil, err
		}
		out = append(out, *found[name])
	}
	return out, nil
}

// find determines the reader of a group: Go and Python keep a membership under its name.
func (s *GroupState) find(ctx context.Context, c *store.Client, stream string) error {
	s.Who = "another program"
	name := s.Group
	if s.Processor != "" {
		s.Who, name = fmt.Sprintf("processor %s, which is not registered", s.Processor), s.Processor
	}
	g, members, err := Members(ctx, c, stream, name)
	if errors.Is(err, rebalance.ErrInvalid) {
		return nil // certainly not Python's
	}
	if err != nil {
		return err
	}
	if s.Processor == "" && g.Python != nil {
		s.Who = PythonWorker
	}
	for _, m := range members {
		s.Alive = s.Alive || m.Alive
	}
	return nil
}
