package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

const (
	adminExpiry  = 5 * time.Second // of the admin lock, and the longest wait for it
	adminBackoff = 50 * time.Millisecond
)

// A MembershipStore is the storage of one processor's membership.
type MembershipStore struct {
	c                 *core
	stream, processor string
}

var _ rebalance.Store = (*MembershipStore)(nil)

// Group returns the storage of a processor's membership.
func (c Control) Group(stream, processor string) *MembershipStore {
	return &MembershipStore{c: c.core, stream: stream, processor: processor}
}

// Key names the stored membership.
func (s *MembershipStore) Key() string { return s.c.keys.Membership(s.stream, s.processor) }

// Load returns the stored membership, nil if there is none.
func (s *MembershipStore) Load(ctx context.Context) ([]byte, error) {
	value, err := s.c.load(ctx, s.Key())
	return value, s.wrap("load membership", unreadable(s.Key(), err))
}

// unreadable wraps an error of reading a membership.
func unreadable(key string, err error) error {
	if errors.Is(err, redisconn.ErrWrongType) {
		return &rebalance.UnreadableError{Key: key, Err: err}
	}
	return err
}

// Swap writes new if the stored value equals old; an empty old stands for none.
// Repeated after it happened, it is true again.
func (s *MembershipStore) Swap(ctx context.Context, old, new []byte) (bool, error) {
	swapped, err := s.c.swap(ctx, s.Key(), old, new)
	return swapped, s.wrap("swap membership", err)
}

// Exclusive runs fn under the admin lock, for which it waits at most 5 s. The context of fn ends
// when the lock expires. The lock of a process that died is bounded to the same time.
func (s *MembershipStore) Exclusive(ctx context.Context, fn func(context.Context) error) error {
	key, token := s.c.keys.AdminLock(s.stream, s.processor), NewExecutorID()
	// An obtained lock whose reply was lost is ours on the next try: the token
	// stays the same. If it is ours at the end all the same, it is given back.
	defer s.unlock(ctx, key, token)
	deadline := time.Now().Add(adminExpiry)
	busy := false // another one holds it
	for {
		held, cancel := context.WithTimeout(ctx, adminExpiry)
		err := s.obtain(held, key, token, !busy)
		if err == nil {
			defer cancel()
			return fn(held)
		}
		cancel()
		busy = busy || errors.Is(err, ErrHeld)
		wait := adminBackoff/2 + rand.N(adminBackoff)
		if time.Now().Add(wait).After(deadline) || !monotime.Sleep(ctx, wait) {
			if busy {
				err = rebalance.ErrBusy
			}
			return s.wrap("admin lock", err)
		}
	}
}

// obtain makes one try. The first try bounds a lock that was left for longer.
func (s *MembershipStore) obtain(ctx context.Context, key, token string, first bool) error {
	err := s.c.obtain(ctx, key, token, adminExpiry)
	if errors.Is(err, ErrHeld) && first {
		return errors.Join(err, s.c.NoRetry.Do(ctx, "PEXPIRE", key, milliseconds(adminExpiry), "LT").Err())
	}
	return err
}

// unlock gives the admin lock back, best effort: it expires anyway.
func (s *MembershipStore) unlock(ctx context.Context, key, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	unlockScript.Run(ctx, s.c.NoRetry, []string{key}, token)
}

// Alive returns the remaining life of each existing heartbeat, after it bounded that to atMost.
func (s *MembershipStore) Alive(ctx context.Context, executors []string, atMost time.Duration) (map[string]time.Duration, error) {
	if len(executors) == 0 {
		return map[string]time.Duration{}, nil
	}
	beats := make([]string, len(executors))
	for i, id := range executors {
		beats[i] = s.c.keys.Beat(s.stream, s.processor, id)
	}
	lives, err := aliveScript.Run(ctx, s.c.NoRetry, beats, milliseconds(atMost)).Int64Slice()
	if err != nil {
		return nil, s.wrap("heartbeats", classify(err))
	}
	if len(lives) != len(executors) {
		return nil, s.wrap("heartbeats", errors.New("reply of another length"))
	}
	alive := make(map[string]time.Duration, len(executors))
	for i, ms := range lives {
		if ms >= 0 {
			alive[executors[i]] = time.Duration(ms) * time.Millisecond
		}
	}
	return alive, nil
}

func (s *MembershipStore) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("stream %s: processor %s: %s: %w", s.stream, s.processor, op, err)
}
