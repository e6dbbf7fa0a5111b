package rebalance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel/internal/help"
)

// A Store is the storage of a Coordinator, for one processor. Its methods may be called
// concurrently, respect ctx, and retain no argument.
type Store interface {
	// Key names the stored membership, for messages.
	Key() string

	// Load returns the stored membership value, nil if there is none.
	Load(ctx context.Context) ([]byte, error)

	// Swap writes new if the stored value equals old, byte by byte (an empty old
	// stands for no value), and reports whether it did. After an error the value
	// may be written, at once or later.
	Swap(ctx context.Context, old, new []byte) (bool, error)

	// Exclusive runs fn under the admin lock and returns its error. It waits for
	// the lock a bounded time, then returns an error without having run fn. The
	// lock only avoids lost swaps: Swap keeps changes apart.
	Exclusive(ctx context.Context, fn func(context.Context) error) error

	// Alive returns the remaining life of each executor's heartbeat; missing executors
	// are dead. A heartbeat that would live longer than atMost is first cut to atMost.
	Alive(ctx context.Context, executors []string, atMost time.Duration) (map[string]time.Duration, error)

	// Announce appends to the control stream. A message may get lost.
	Announce(ctx context.Context, m Message) error
}

// A Message announces a change to the other members. It is a hint that saves them time:
// nothing depends on its arrival.
type Message struct {
	Kind       Kind
	Executor   string // that joined, left, released, or was found dead
	Generation int64  // of the membership that was written or is followed
	Partition  int    // for Released
}

// A Kind is the kind of a Message.
type Kind int

const (
	Joined   Kind = iota + 1 // a member joined
	Left                     // a member left
	Died                     // a member's heartbeat expired, another one removed it
	Released                 // a member gave up the lock of a partition
	Steered                  // an operator pinned partitions or cordoned workers
)

var kindTexts = map[Kind]string{Joined: "join", Left: "leave", Died: "dead", Released: "released", Steered: "steered"}

// String returns the kind as it stands in the control stream.
func (k Kind) String() string {
	if s, ok := kindTexts[k]; ok {
		return s
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// MarshalText returns the kind as it stands in the control stream; an unknown kind is an error.
func (k Kind) MarshalText() ([]byte, error) {
	if s, ok := kindTexts[k]; ok {
		return []byte(s), nil
	}
	return nil, fmt.Errorf("unknown kind %d of control message", int(k))
}

// UnmarshalText is the inverse of MarshalText.
func (k *Kind) UnmarshalText(text []byte) error {
	for kind, s := range kindTexts {
		if s == string(text) {
			*k = kind
			return nil
		}
	}
	return fmt.Errorf("unknown kind %q of control message", text)
}

// An Owner acquires and releases partitions for the coordinator. Calls for different
// partitions are concurrent; calls for one partition never overlap.
type Owner interface {
	// Acquire tries once to become the owner of a partition. It returns nil if the partition is
	// owned from now on, also if it was owned already; ErrHeld, wrapped or not, while another owner
	// holds the lock; after any other error the coordinator tries again later. A try of unknown
	// outcome may leave a lock behind. The next try settles that, or Release, if the partition is
	// assigned to another member first; once ctx has ended, Acquire undoes it as far as possible
	// before it returns. foreign is the longest life that a lock of any member may have.
	Acquire(ctx context.Context, partition int, foreign time.Duration) error

	// Release gives up a partition. It blocks until the handler has ended and the lock is
	// handed over or found lost. When it returns, with or without an error, the partition
	// is not owned. It is also called when the last Acquire failed with an error other than
	// ErrHeld and no further Acquire follows. Its ctx does not end with Run's.
	Release(ctx context.Context, partition int) error
}

var (
	// ErrHeld is returned by an Owner's Acquire while another owner holds the lock.
	ErrHeld = errors.New("the partition's lock is held by another executor")

	// ErrAbsent is returned by a Coordinator's Run if the stored membership no longer has
	// this member: others found it dead, or the value was deleted or set back. All
	// partitions are released by then. The caller may join again under a new ID.
	ErrAbsent = errors.New("no longer a member of the processor's membership")
)

// An UnreadableError is returned if the stored value is no membership. Members keep their
// partitions, and no executor can join, until the key is deleted.
type UnreadableError struct {
	Key string
	Err error // wraps ErrInvalid, or is the error of reading the key
}

// Error names the key and the remedy.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("membership %s: %v: delete that key, and the members write it anew within seconds; they keep what they own until then; %s", e.Key, e.Err, help.UnreadableKey)
}

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// ParseStored is Parse with errors that name the key.
func ParseStored(key string, value []byte) (Group, error) {
	g, err := Parse(value)
	switch {
	case errors.Is(err, ErrInvalid):
		return g, &UnreadableError{key, err}
	case err != nil:
		return g, fmt.Errorf("membership %s: %w", key, err)
	}
	return g, nil
}

// A partitionsError is returned if the members of a processor run with another number of
// partitions.
type partitionsError struct{ Stored, Own int }

// Error names both numbers.
func (e *partitionsError) Error() string {
	return fmt.Sprintf("the membership is for %d partitions, this executor was started for %d", e.Stored, e.Own)
}
