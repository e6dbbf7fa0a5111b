package rebalance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

func (g Group) wishes() Wishes {
	return Wishes{Pins: g.Pins, Cordoned: slices.Sorted(maps.Keys(g.Cordons))}
}

// Pin returns the group with these partitions assigned to a worker for as long as it
// is a member, whatever else moves; with "" for the worker, with their pins removed.
// The generation is raised and all partitions are assigned afresh. Partitions out of
// range are an error.
func (g Group) Pin(salt, worker string, partitions ...int) (Group, error) {
	next := g.without(nil)
	if next.Pins == nil {
		next.Pins = map[int]string{}
	}
	for _, p := range partitions {
		if p < 0 || p >= g.Partitions {
			return g, fmt.Errorf("there is no partition %d of %d", p, g.Partitions)
		}
		if worker == "" {
			delete(next.Pins, p)
		} else {
			next.Pins[p] = worker
		}
	}
	return next.reassigned(salt), nil
}

// Cordon returns the group with a worker that gets nothing but what is pinned to it,
// unless all members are cordoned; the zero time ends that. The generation is raised
// and all partitions are assigned afresh.
func (g Group) Cordon(salt, worker string, at time.Time) Group {
	next := g.without(nil)
	if next.Cordons == nil {
		next.Cordons = map[string]time.Time{}
	}
	if at.IsZero() {
		delete(next.Cordons, worker)
	} else if next.Cordons[worker].IsZero() { // else since then
		next.Cordons[worker] = at
	}
	return next.reassigned(salt)
}

// ErrBusy is returned if others were changing a membership for as long as the caller
// waited to change it.
var ErrBusy = errors.New("membership keeps changing")

const steerTries = 10

// Steer changes a stored membership on behalf of an operator, and tells the members,
// which follow at once, or with their next heartbeat. change may be called several
// times; its error ends it. Steer blocks for some seconds at most.
func Steer(ctx context.Context, s Store, change func(Group) (Group, error)) (Group, error) {
	next, err := alter(ctx, s, func(ctx context.Context, g Group) (Group, error) {
		if err := g.vacant(ctx, s); err != nil {
			return g, err
		}
		return change(g)
	})
	if err != nil {
		return Group{}, err
	}
	// What gets lost the heartbeats make up for.
	_ = s.Announce(ctx, Message{Kind: Steered, Generation: next.Generation})
	return next, nil
}

// Remove takes an executor that has ended, and has no heartbeat any more, out of a stored
// membership, together with all others that have none: where many end at once, the first
// of them does it for all. It blocks for some seconds at most.
func Remove(ctx context.Context, s Store, salt, id string) error {
	gone := errors.New("it is no member")
	quick, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	value, err := s.Load(quick)
	if err != nil {
		return err
	}
	if g, err := ParseStored(s.Key(), value); err != nil || !g.has(id) {
		return err // before it waits: another one has removed it
	}
	next, err := alter(ctx, s, func(ctx context.Context, g Group) (Group, error) {
		if !g.has(id) {
			return g, gone
		}
		alive, err := s.Alive(ctx, g.IDs(), g.Expiry())
		dead := slices.DeleteFunc(g.IDs(), func(other string) bool { _, lives := alive[other]; return lives && other != id })
		return g.Leave(salt, dead...), err
	})
	if errors.Is(err, gone) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = s.Announce(ctx, Message{Kind: Left, Executor: id, Generation: next.Generation})
	return nil
}

func (g Group) has(id string) bool {
	_, in := g.Executors[id]
	return in
}

// alter changes a stored membership under the admin lock.
func alter(ctx context.Context, s Store, change func(context.Context, Group) (Group, error)) (next Group, err error) {
	err = s.Exclusive(ctx, func(ctx context.Context) error {
		for range steerTries {
			old, err := s.Load(ctx)
			if err != nil {
				return err
			}
			g, err := ParseStored(s.Key(), old)
			if err != nil {
				return err
			}
			if next, err = change(ctx, g); err != nil {
				return err
			}
			next, _ = next.tidied(g, time.Now())
			swapped, err := s.Swap(ctx, old, next.Encode())
			if swapped || err != nil {
				return err
			}
		}
		return ErrBusy
	})
	return next, err
}
