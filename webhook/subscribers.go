package webhook

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
)

// A Subscriber is one at the moment of a look. Its figures are exact: what was published since it subscribed is Sent, Queued, Dropped and Dead
// together.
type Subscriber struct {
	Subscription // without UUID and Secret, and with the topics that have not ended

	// Events: the receiver has taken them; they wait, or are under way; they were too old, or there was no room; they have had all their attempts.
	Sent, Queued, Dropped, Dead int64
	Failed                      int64     // attempts
	Oldest                      time.Time // of what is queued; zero for nothing

	// State is "ok", "failing" (the last attempt has failed, the next is due), "waiting" (likewise, until NextAttempt), "paused" (by an
	// operator) or "disabled" (by the bus, after failures; Resume ends it).
	State       string
	Since       time.Time // of the first failure in a row, or of the pause; zero if it is ok
	LastError   string    // of the last attempt, unless it has succeeded; it names at most the host of the callback
	NextAttempt time.Time // if it is waiting
	PausedBy    string    // if it is paused
}

// Subscribers returns all subscribers, in no order. One that is not readable comes with its name and an error, behind which others follow; an
// error without a name is the last. It reads from Redis when it is ranged over, all of them at once.
func (b *Bus) Subscribers(ctx context.Context) iter.Seq2[Subscriber, error] {
	return func(yield func(Subscriber, error) bool) {
		if err := b.ready(ctx); err != nil {
			yield(Subscriber{}, err)
			return
		}
		all, err := buses.Subscribers(ctx, b.calls, b.stream.Meta.Partitions)
		if err != nil {
			yield(Subscriber{}, err)
		}
		for _, s := range all {
			if !yield(publicOf(s), s.Err) {
				return
			}
		}
	}
}

// publicOf returns what anybody may see of a subscriber.
func publicOf(s *buses.SubscriberState) Subscriber {
	return Subscriber{
		Subscription: Subscription{
			Client: s.Subscriber, Callback: s.Settings.Callback, Topics: s.Settings.Wants(), Max: s.Settings.Max, Format: Format(s.Settings.Format),
			Timeout: cmp.Or(time.Duration(s.Settings.Timeout)*time.Millisecond, -1),
		},
		Sent: s.Sent, Queued: s.Queued, Dropped: s.Dropped, Dead: s.Dead, Failed: s.Failed, Oldest: s.Oldest,
		State: s.State, Since: s.Since, LastError: s.Error, NextAttempt: s.Next, PausedBy: s.By,
	}
}

// row returns a subscriber as GET /subscribers has it.
func (c *call) row(s *buses.SubscriberState) map[string]any {
	callback := s.Settings.Callback
	if !c.is(roleRoot) && !c.is(RoleRead) && s.Subscriber != c.client {
		scheme, _, _ := strings.Cut(callback, "://")
		callback = scheme + "://" + s.Host
	}
	row := map[string]any{
		"subscriber": s.Subscriber, "uuid": nil, "callback": callback, "max_events": s.Settings.Max, "timeout": s.Settings.Timeout,
		"topics": append([]string{}, s.Settings.Wants()...), "state": s.State, "error": orNull(s.Error), "next_attempt": orNull(s.Next.Truncate(time.Second)),
		"events": map[string]any{
			"sent": s.Sent, "queued": s.Queued, "oldest": orNull(max(s.Oldest.Unix(), 0)), "dropped": s.Dropped, "dead": s.Dead, "failed": s.Failed,
		},
	}
	if s.Err != nil {
		row["error"] = s.Err.Error()
	}
	return row
}

func (a *api) listSubscribers(c *call) (any, error) {
	all, err := buses.Subscribers(c.Context(), a.calls, a.stream.Meta.Partitions)
	rows := []any{}
	for _, s := range all {
		rows = append(rows, c.row(s))
	}
	return rows, err
}

// pulse answers whether Redis does.
func (a *api) pulse(c *call) (any, error) {
	return nil, a.calls.Client().Retrying.Ping(c.Context()).Err()
}

const (
	scalingBatches = 100
	scalingWait    = time.Second
)

// scaling answers slowly if many batches are due, of receivers that take them.
func (a *api) scaling(c *call) (any, error) {
	due := int64(0)
	all, err := buses.Subscribers(c.Context(), a.calls, a.stream.Meta.Partitions)
	for _, s := range all {
		if s.State == "ok" {
			most, queued := int64(max(s.Settings.Max, 1)), s.Queued
			if time.Until(s.Oldest)+time.Duration(s.Settings.Timeout)*time.Millisecond < scalingWait {
				queued += most - 1 // what is not full is due, too
			}
			due += queued / most
		}
	}
	if due >= scalingBatches {
		select {
		case <-time.After(scalingWait):
		case <-c.Context().Done():
		}
	}
	return nil, err
}

// orNull returns nil for the zero value.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
