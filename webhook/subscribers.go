package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
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
// error without a name is the last. It reads from Redis while it is ranged over, some hundred subscribers at a time.
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
			one, err := publicOf(s, time.Now())
			if !yield(one, err) {
				return
			}
		}
	}
}

// publicOf returns what anybody may see of a subscriber.
func publicOf(s *buses.Subscriber, now time.Time) (Subscriber, error) {
	if s.Err != nil {
		return Subscriber{Subscription: Subscription{Client: s.Name}}, s.Err
	}
	wants, state, figures := s.Settings, &s.State, &s.Figures
	out := Subscriber{
		Subscription: Subscription{
			Client: s.Name, Callback: wants.Callback, Max: wants.Max, Format: Format(wants.Format),
			Timeout: time.Duration(wants.Timeout) * time.Millisecond,
		},
		Sent: figures.Sent, Queued: figures.Queued, Dropped: figures.Dropped, Dead: figures.Dead, Failed: figures.Failed,
		Oldest: s.Oldest, State: "ok",
	}
	if out.Timeout == 0 {
		out.Timeout = -1
	}
	for name, span := range wants.Topics {
		if log, err := iwebhook.ParseLog(name); err == nil && span.End == 0 {
			out.Topics = append(out.Topics, log.Topic)
		}
	}
	slices.Sort(out.Topics)
	var until time.Time
	if len(state.Open) > 0 && state.Open[0].Until > 0 {
		until = time.UnixMilli(state.Open[0].Until).UTC()
	}
	pause := wants.Paused
	if state.Since > 0 {
		out.Since, out.LastError = time.UnixMilli(state.Since).UTC(), state.Last.Error
	}
	switch resumed := wants.Resumed > state.Resumed; { // which the owner may not have seen yet
	case state.Off != "" && !resumed:
		out.State = "disabled"
		if out.LastError == "" {
			out.LastError = state.Off
		}
	case pause != nil && (pause.Until.IsZero() || now.Before(pause.Until)):
		out.State, out.PausedBy, out.Since = "paused", pause.By, pause.Since
	case state.Since == 0 || resumed:
		out.Since, out.LastError = time.Time{}, ""
	case until.After(now):
		out.State, out.NextAttempt = "waiting", until
	default:
		out.State = "failing"
	}
	return out, nil
}

// A subscriberRow is a subscriber as GET /subscribers has it.
type subscriberRow struct {
	Subscriber  string    `json:"subscriber"`
	UUID        *string   `json:"uuid"` // never shown
	Callback    string    `json:"callback"`
	MaxEvents   int       `json:"max_events"`
	Timeout     int64     `json:"timeout"`
	Topics      []string  `json:"topics"`
	Events      rowEvents `json:"events"`
	State       string    `json:"state"`
	Error       *string   `json:"error"`
	NextAttempt *string   `json:"next_attempt"`
}

type rowEvents struct {
	Sent    int64  `json:"sent"`
	Queued  int64  `json:"queued"`
	Oldest  *int64 `json:"oldest"`
	Dropped int64  `json:"dropped"`
	Dead    int64  `json:"dead"`
	Failed  int64  `json:"failed"`
}

func rowOf(s *Subscriber, c *caller) subscriberRow {
	row := subscriberRow{
		Subscriber: s.Client, Callback: s.Callback, MaxEvents: s.Max, Timeout: max(s.Timeout, 0).Milliseconds(), Topics: s.Topics,
		Events: rowEvents{s.Sent, s.Queued, unixOrNull(s.Oldest), s.Dropped, s.Dead, s.Failed},
		State:  s.State, Error: orNull(s.LastError),
	}
	if row.Topics == nil {
		row.Topics = []string{}
	}
	if !c.root && !c.has(RoleRead) && s.Client != c.client {
		row.Callback = ""
		if u, err := url.Parse(s.Callback); err == nil {
			row.Callback = u.Scheme + "://" + u.Host
		}
	}
	if !s.NextAttempt.IsZero() {
		row.NextAttempt = orNull(s.NextAttempt.Format(time.RFC3339))
	}
	return row
}

// listSubscribers writes subscribers as they are read. An error behind the first of them ends the connection.
func (a *api) listSubscribers(w http.ResponseWriter, r *http.Request, c *caller) error {
	before := "["
	for s, err := range a.Subscribers(r.Context()) {
		switch {
		case err != nil && s.Client == "":
			return err
		case err != nil:
			a.log.Error("subscriber is not readable", "subscriber", s.Client, "err", err)
			s.State, s.LastError = "unreadable", "it is not readable, and the log says why"
		}
		text, err := encode(rowOf(&s, c))
		if err == nil {
			_, err = fmt.Fprintf(w, "%s%s", before, text)
		}
		if err != nil {
			return err
		}
		before = ",\n "
	}
	if before == "[" {
		return reply(w, http.StatusOK, json.RawMessage("[]"))
	}
	_, _ = fmt.Fprint(w, "]\n") // the other side has gone
	return nil
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
		if due < scalingBatches {
			continue
		}
		select {
		case <-time.After(scalingWait):
		case <-r.Context().Done():
		}
		break
	}
	return done(w, nil)
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// unixOrNull returns a time in seconds since 1970.
func unixOrNull(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	s := at.Unix()
	return &s
}
