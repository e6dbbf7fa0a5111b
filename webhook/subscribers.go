package webhook

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
)

// A Subscriber is one at the moment of a look. Its figures are exact: what was published since it subscribed is Sent, Queued, Dropped and Dead
// together.
type Subscriber struct {
	Subscription // without UUID and Secret, and with the topics that have not ended

	Sent    int64     // events that the receiver has taken
	Queued  int64     // events that wait, or are under way
	Dropped int64     // events that were too old, or for which there was no room
	Dead    int64     // events that have had all their attempts
	Failed  int64     // attempts
	Oldest  time.Time // of what is queued; zero for nothing

	// State is "ok", "failing" (the last attempt has failed, the next is due), "waiting" (likewise, until NextAttempt), "paused" (by an
	// operator) or "disabled" (by the bus, after failures; Resume ends it).
	State       string
	Since       time.Time // of the first failure in a row, or of the pause; zero if it is ok
	LastError   string    // of the last attempt, unless it has succeeded; it names at most the host of the callback
	NextAttempt time.Time // if it is waiting
	PausedBy    string    // if it is paused
}

// Subscribers returns all subscribers, in no order. One that is not readable comes with its name and an error, behind which others follow; an
// error without a name is the last. It reads from Redis while it is ranged over, a partition of the bus at a time.
func (b *Bus) Subscribers(ctx context.Context) iter.Seq2[Subscriber, error] {
	return func(yield func(Subscriber, error) bool) {
		if err := b.ready(ctx); err != nil {
			yield(Subscriber{}, err)
			return
		}
		for s, err := range buses.Subscribers(ctx, b.calls, b.stream.Meta.Partitions) {
			if err != nil {
				yield(Subscriber{}, err)
				return
			}
			if !yield(publicOf(s), s.Err) {
				return
			}
		}
	}
}

// publicOf returns what anybody may see of a subscriber.
func publicOf(s *buses.SubscriberState) Subscriber {
	if s.Err != nil {
		return Subscriber{Subscription: Subscription{Client: s.Subscriber}}
	}
	return Subscriber{
		Subscription: Subscription{
			Client: s.Subscriber, Callback: s.Settings.Callback, Topics: s.Wants(), Max: s.Settings.Max, Format: Format(s.Settings.Format),
			Timeout: cmp.Or(time.Duration(s.Settings.Timeout)*time.Millisecond, -1),
		},
		Sent: s.Sent, Queued: s.Queued, Dropped: s.Dropped, Dead: s.Dead, Failed: s.Failed, Oldest: s.Oldest,
		State: s.State, Since: s.Since, LastError: s.Error, NextAttempt: s.Next, PausedBy: s.By,
	}
}

// rowOf returns a subscriber as GET /subscribers has it.
func rowOf(s *Subscriber, c *caller) map[string]any {
	callback := s.Callback
	if !c.root && !c.has(RoleRead) && s.Client != c.client {
		callback = ""
		if u, err := url.Parse(s.Callback); err == nil {
			callback = u.Scheme + "://" + u.Host
		}
	}
	row := map[string]any{
		"subscriber": s.Client, "uuid": nil, "callback": callback, "max_events": s.Max, "timeout": max(s.Timeout, 0).Milliseconds(),
		"topics": append([]string{}, s.Topics...), "state": s.State, "error": orNull(s.LastError), "next_attempt": nil,
		"events": map[string]any{
			"sent": s.Sent, "queued": s.Queued, "oldest": orNull(max(s.Oldest.Unix(), 0)), "dropped": s.Dropped, "dead": s.Dead, "failed": s.Failed,
		},
	}
	if !s.NextAttempt.IsZero() {
		row["next_attempt"] = s.NextAttempt.Format(time.RFC3339)
	}
	return row
}

func (a *api) listSubscribers(w http.ResponseWriter, r *http.Request, c *caller) error {
	rows := []map[string]any{}
	for s, err := range a.Subscribers(r.Context()) {
		switch {
		case err != nil && s.Client == "":
			return err
		case err != nil:
			a.log.Error("subscriber is not readable", "subscriber", s.Client, "err", err)
			s.State, s.LastError = "unreadable", "it is not readable, and the log says why"
		}
		rows = append(rows, rowOf(&s, c))
	}
	return reply(w, http.StatusOK, rows)
}

// pulse answers whether Redis does.
func (a *api) pulse(w http.ResponseWriter, r *http.Request, _ *caller) error {
	return done(w, a.calls.Client().Retrying.Ping(r.Context()).Err())
}

const (
	scalingBatches = 100
	scalingWait    = time.Second
)

// scaling answers slowly if many batches are due, of receivers that take them.
func (a *api) scaling(w http.ResponseWriter, r *http.Request, _ *caller) error {
	due := int64(0)
	for s, err := range a.Subscribers(r.Context()) {
		if err != nil && s.Client == "" {
			return err
		}
		if s.State != "ok" || s.Queued == 0 {
			continue
		}
		due += s.Queued / int64(s.Max)
		if s.Queued%int64(s.Max) > 0 && time.Until(s.Oldest.Add(s.Timeout)) < scalingWait {
			due++
		}
	}
	if due >= scalingBatches {
		select {
		case <-time.After(scalingWait):
		case <-r.Context().Done():
		}
	}
	return done(w, nil)
}

// orNull returns nil for the zero value.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
