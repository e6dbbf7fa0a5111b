package rebalance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

func (g Group) wishes() wishes {
	return wishes{Pins: g.Pins, Cordoned: slices.Sorted(maps.Keys(g.Cordons))}
}

// Pin returns the group with these partitions assigned to a worker for as long as the worker
// is a member; an empty worker removes their pins. The generation is raised and all
// partitions are assigned afresh. A partition out of range is an error.
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

// Cordon returns the group with a worker that gets only the partitions pinned to it, unless
// all members are cordoned; a zero time ends the cordon. The generation is raised and all
// partitions are assigned afresh.
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

// ErrBusy is returned if others kept changing a membership for as long as the caller waited.
var ErrBusy = errors.New("membership keeps changing")

const steerTries = 10

// Steer changes a stored membership on behalf of an operator, and announces the change. The
// members follow at once, or with their next heartbeat. fn may be called several times; its
// error ends Steer. Steer blocks for some seconds at most.
func Steer(ctx context.Context, s Store, fn func(Group) (Group, error)) (Group, error) {
	next, err := change(ctx, s, steerTries, func(ctx context.Context, g Group) (Group, error) {
		if err := g.vacant(ctx, s); err != nil {
			return g, err
		}
		return fn(g)
	})
	if err != nil {
		return Group{}, err
	}
	// Heartbeats make up for a lost message.
	_ = s.Announce(ctx, Message{Kind: Steered, Generation: next.Generation})
	return next.Group, nil
}

// Remove removes an executor that has ended, and has no heartbeat any more, from a stored
// membership, together with all others without one: when many end at once, the first does it for
// all. It blocks for some seconds at most.
func Remove(ctx context.Context, s Store, salt, id string) error {
	quick, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	value, err := s.Load(quick)
	if err != nil {
		return err
	}
	if g, err := ParseStored(s.Key(), value); err != nil || !g.has(id) {
		return err // another one has removed it: no wait for the lock
	}
	removed := false
	next, err := change(ctx, s, steerTries, func(ctx context.Context, g Group) (Group, error) {
		if removed = g.has(id); !removed {
			return g, nil
		}
		alive, err := s.Alive(ctx, g.IDs(), g.Expiry())
		dead := slices.DeleteFunc(g.IDs(), func(other string) bool { _, lives := alive[other]; return lives && other != id })
		return g.Leave(salt, dead...), err
	})
	if err == nil && removed {
		_ = s.Announce(ctx, Message{Kind: Left, Executor: id, Generation: next.Generation})
	}
	return err
}

func (g Group) has(id string) bool {
	_, in := g.Executors[id]
	return in
}

// A changed is a membership after a change.
type changed struct {
	Group
	value     []byte   // as it is stored
	forgotten []string // workers whose pins and cordons were dropped
}

// change replaces the stored membership by the result of fn, under the admin lock. It writes
// nothing when fn leaves the generation as it is. After so many writes that others overtook it
// returns ErrBusy.
func change(ctx context.Context, s Store, tries int, fn func(context.Context, Group) (Group, error)) (changed, error) {
	var c changed
	done := false
	err := s.Exclusive(ctx, func(ctx context.Context) error {
		for range tries {
			old, err := s.Load(ctx)
			if err != nil {
				return err
			}
			g, err := ParseStored(s.Key(), old)
			if err != nil {
				return err
			}
			next, err := fn(ctx, g)
			if err != nil {
				return err
			}
			if next.Generation == g.Generation {
				c, done = changed{Group: g, value: old}, true
				return nil
			}
			next, forgotten := next.tidied(g, time.Now())
			c = changed{next, next.Encode(), forgotten}
			if done, err = s.Swap(ctx, old, c.value); done || err != nil {
				return err
			}
		}
		return ErrBusy
	})
	if done {
		return c, nil // an error of unlocking does not matter
	}
	return changed{}, err
}
