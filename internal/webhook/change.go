package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// ErrNoSubscriber is returned for a subscriber that does not exist.
var ErrNoSubscriber = errors.New("there is no such subscriber")

const mostReplacements = 20

// Subscriptions are what the subscribers of a bus want, to change.
type Subscriptions struct{ *Bus }

// Change replaces what a subscriber wants by what how returns, nil for none. how gets it as it is stored, with nil Settings if it is
// not, and may be called again, with what is stored by then.
func (b Subscriptions) Change(ctx context.Context, n int, name string, how func(old *Subscriber) (*Settings, error)) error {
	for range mostReplacements {
		old, err := b.Subscriber(ctx, n, name)
		if err != nil {
			return err
		}
		wants, err := how(old)
		if err != nil {
			return err
		}
		if _, err = b.Want(ctx, n, old, wants); err == nil {
			err = b.unpin(ctx, name, old.Settings, wants)
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("subscriber %s: %w, %d times", name, ErrConflict, mostReplacements)
}

// unpin removes the pins of logs that a subscriber does not want any more. Its owner may never hear that it did.
func (b Subscriptions) unpin(ctx context.Context, name string, old, wants *Settings) error {
	if old == nil {
		return nil
	}
	for text := range old.Topics {
		if wants != nil {
			if _, still := wants.Topics[text]; still {
				continue
			}
		}
		log, err := ParseLog(text)
		if err == nil {
			err = b.Unpin(ctx, log, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ChangeStored is Change of a subscriber that is there: how changes its settings. The error is ErrNoSubscriber if there is none.
func (b Subscriptions) ChangeStored(ctx context.Context, n int, name string, how func(wants *Settings) error) error {
	return b.Change(ctx, n, name, func(old *Subscriber) (*Settings, error) {
		if old.Settings == nil {
			return nil, fmt.Errorf("subscriber %s: %w", name, ErrNoSubscriber)
		}
		wants := *old.Settings
		wants.Topics = maps.Clone(wants.Topics)
		return &wants, how(&wants)
	})
}

// Pause holds a subscriber back, for a time or, with 0, until it is resumed.
func (b Subscriptions) Pause(ctx context.Context, n int, name, by, why string, last time.Duration) error {
	return b.ChangeStored(ctx, n, name, func(wants *Settings) error {
		now := time.Now().UTC().Truncate(time.Second)
		wants.Paused = &Pause{By: by, Why: why, Since: now}
		if last > 0 {
			wants.Paused.Until = now.Add(last)
		}
		return nil
	})
}

// Resume ends a pause, the wait for the next attempt, and what has disabled a subscriber.
func (b Subscriptions) Resume(ctx context.Context, n int, name string) error {
	return b.ChangeStored(ctx, n, name, func(wants *Settings) error {
		wants.Paused = nil
		wants.Resumed++
		return nil
	})
}

// In reports whether the pause holds at a time. There may be none.
func (p *Pause) In(now time.Time) bool { return p != nil && (p.Until.IsZero() || p.Until.After(now)) }

// SealedPrefix begins what is sealed.
const SealedPrefix = "s1:"

// Sealed reports whether a text is sealed, and not stored as it is.
func Sealed(text string) bool { return strings.HasPrefix(text, SealedPrefix) }
