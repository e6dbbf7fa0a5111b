package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A Format is how a batch is written.
type Format string

// Formats of batches.
const (
	Array  Format = ""       // a list of events, as Routemaster has them
	Single Format = "single" // one event, as Standard Webhooks have it; Max is 1
)

// A Subscription is what a subscriber wants. A zero field takes the default.
type Subscription struct {
	Client   string // its name: letters, digits, - and _, 64 at most
	Callback string // where its events are POSTed: https, without user, query and fragment
	Topics   []string
	UUID     string // sent as the user name of HTTP Basic
	Secret   string // signs batches; see NewSecret. Another one signs beside the one before for a day
	Max      int    // events of a batch, default 100, at most 10 000
	// Timeout is how long an event waits for others to fill a batch, default 500 ms; negative: not at all.
	Timeout time.Duration
	Format  Format
}

const (
	defaultMax      = 100
	mostMax         = 10_000
	mostBytes       = 1 << 20 // of a batch
	defaultDeadline = 500 * time.Millisecond
	mostDeadline    = 24 * time.Hour
	mostTopics      = 1000
	mostUUID        = 256
	rotation        = 24 * time.Hour // for which a secret signs beside the next one
)

// check returns what is wrong with a subscription, and sets its defaults.
func (b *Bus) check(s *Subscription) error {
	s.Max, s.Timeout = cmp.Or(s.Max, defaultMax), max(cmp.Or(s.Timeout, defaultDeadline), 0)
	switch s.Format {
	case "array": // as it is shown
		s.Format = Array
	case Single:
		s.Max = 1
	}
	if err := checkClient(s.Client); err != nil {
		return err
	}
	switch {
	case len(s.Topics) == 0 || len(s.Topics) > mostTopics:
		return invalidf("%d topics: 1 to %d are possible", len(s.Topics), mostTopics)
	case s.Max < 1 || s.Max > mostMax:
		return invalidf("max %d is not in 1 to %d", s.Max, mostMax)
	case s.Timeout > mostDeadline:
		return invalidf("timeout %v is more than %v", s.Timeout, mostDeadline)
	case s.Format != Array && s.Format != Single:
		return invalidf("format %.40q is not known", s.Format)
	case len(s.UUID) > mostUUID || strings.ContainsFunc(s.UUID, func(c rune) bool { return c <= ' ' || c == ':' || c > '~' }):
		return invalidf("uuid has more than %d characters, or others than letters, digits and signs but the colon", mostUUID)
	}
	for _, topic := range s.Topics {
		if err := b.checkTopic(topic); err != nil {
			return err
		}
	}
	if s.Secret != "" {
		if _, err := parseSecret(s.Secret); err != nil {
			return invalidf("secret: %v", err)
		}
	}
	if err := checkCallback(s.Callback, b.opts.AllowHTTP, b.opts.AllowAddresses); err != nil {
		return invalidf("callback: %v", err)
	}
	return nil
}

// Subscribe stores what a subscriber wants, and replaces what it wanted; topics that it does not name end where they are. What is published
// after it returned is delivered. It may be repeated, and blocks until the server has answered, or ctx ends.
func (b *Bus) Subscribe(ctx context.Context, s Subscription) error {
	if err := b.check(&s); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	for _, topic := range s.Topics {
		if err := b.claim(ctx, topic, ""); err != nil {
			return err
		}
	}
	book := subscriptions{b}
	return book.change(ctx, s.Client, true, func(stored *iwebhook.Subscriber) error {
		w := stored.Settings
		w.Callback, w.Max, w.Timeout, w.Format = s.Callback, s.Max, s.Timeout.Milliseconds(), string(s.Format)
		w.UUID = book.resealed(s.Client, fieldUUID, s.UUID, w.UUID)
		book.sign(s.Client, w, s.Secret)
		if err := book.start(ctx, stored, s.Topics); err != nil {
			return err
		}
		return book.end(ctx, w, func(topic string) bool { return !slices.Contains(s.Topics, topic) })
	})
}

// subscriptions are what subscribers of a bus want, as it is stored.
type subscriptions struct{ *Bus }

// What of a subscriber is sealed.
const (
	fieldUUID   = "uuid"
	fieldSecret = "secret"
)

// change changes what is stored of a subscriber, or of one that is made anew.
func (b subscriptions) change(ctx context.Context, client string, anew bool, how func(stored *iwebhook.Subscriber) error) error {
	if err := checkClient(client); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	return b.calls.Change(ctx, b.partition(client), client, anew, how)
}

// set changes settings of a subscriber that exists.
func (b subscriptions) set(ctx context.Context, client string, how func(w *iwebhook.Settings)) error {
	return b.change(ctx, client, false, func(stored *iwebhook.Subscriber) error {
		how(stored.Settings)
		return nil
	})
}

// sign has batches signed with a secret, "" for none, and for a while with the one before, too.
func (b subscriptions) sign(client string, w *iwebhook.Settings, secret string) {
	if secret == "" {
		w.Secrets = nil
		return
	}
	var before iwebhook.Secret
	if len(w.Secrets) > 0 {
		before = w.Secrets[0]
	}
	sealed := b.resealed(client, fieldSecret, secret, before.Sealed)
	if sealed == before.Sealed {
		return
	}
	w.Secrets = []iwebhook.Secret{{Sealed: sealed}}
	if before.Sealed != "" {
		before.Until = time.Now().Add(rotation).UTC().Truncate(time.Second)
		w.Secrets = append(w.Secrets, before)
	}
}

// resealed seals a text, unless it is what is stored: then nothing changes.
func (b subscriptions) resealed(client, field, text, stored string) string {
	if text == "" {
		return ""
	}
	if was, err := b.open(client, field, stored); err == nil && was == text {
		return stored
	}
	return b.seal.seal(text, b.place(client, field))
}

// open opens what was sealed of a subscriber.
func (b subscriptions) open(client, field, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	text, err := b.seal.open(sealed, b.place(client, field))
	if err != nil {
		err = fmt.Errorf("open %s of subscriber %s: %w", field, client, err)
	}
	return text, err
}

func (b subscriptions) place(client, field string) []byte {
	return placeOf(b.calls.Client().Keys().App, b.name, client, field)
}

// start has a subscriber get topics: those that are new to it from where they are now, where they are pinned.
func (b subscriptions) start(ctx context.Context, s *iwebhook.Subscriber, topics []string) error {
	for _, topic := range topics {
		span, there := s.Settings.Topics[topic]
		if there && (span.End == 0 || !s.State.Seen(topic, span)) {
			span.End = 0 // what is queued of one that the owner has not begun yet is not lost
		} else {
			var err error
			if span, err = b.calls.Pin(ctx, topic, s.Name); err != nil {
				return err
			}
		}
		s.Settings.Topics[topic] = span
	}
	return nil
}

// end ends the topics of settings that it chooses where they are now.
func (b subscriptions) end(ctx context.Context, w *iwebhook.Settings, chosen func(topic string) bool) error {
	var ending []string
	for topic, span := range w.Topics {
		if span.End == 0 && chosen(topic) {
			ending = append(ending, topic)
		}
	}
	extents, err := b.calls.Extents(ctx, ending)
	for topic, e := range extents {
		span := w.Topics[topic]
		if span.End = e.Last.N; span.End == 0 {
			delete(w.Topics, topic) // it never had an event
		} else {
			w.Topics[topic] = span
		}
	}
	return err
}

// Unsubscribe ends topics, or without any all of it: then what is queued is forgotten. No request begins after it returned, but for what is
// queued of topics that have ended. The error is ErrNoSubscriber if there is none.
func (b *Bus) Unsubscribe(ctx context.Context, client string, topics ...string) error {
	book := subscriptions{b}
	return book.change(ctx, client, false, func(stored *iwebhook.Subscriber) error {
		if len(topics) == 0 {
			stored.Settings = nil
			return nil
		}
		return book.end(ctx, stored.Settings, func(topic string) bool { return slices.Contains(topics, topic) })
	})
}

// endAll ends a topic for all subscribers.
func (b subscriptions) endAll(ctx context.Context, topic string) error {
	for n := range b.stream.Meta.Partitions {
		for s, err := range b.calls.Subscribers(ctx, n) {
			if s == nil {
				return err
			}
			if span, there := s.Settings.Topics[topic]; err != nil || !there || span.End > 0 {
				continue // one that is not readable has ended anyway
			}
			if err := b.Unsubscribe(ctx, s.Name, topic); err != nil && !errors.Is(err, ErrNoSubscriber) {
				return err
			}
		}
	}
	return nil
}

// PauseOptions say who pauses a subscriber, and why, for people who ask later; and for how long, 0: until it is resumed.
type PauseOptions struct {
	Who, Why string
	For      time.Duration
}

// Pause holds a subscriber back: no request begins after it returned, and what is published meanwhile waits. A nil opts is without an end. The error is
// ErrNoSubscriber if there is none.
func (b *Bus) Pause(ctx context.Context, client string, opts *PauseOptions) error {
	if opts == nil {
		opts = &PauseOptions{}
	}
	return subscriptions{b}.set(ctx, client, func(w *iwebhook.Settings) { w.Pause(opts.Who, opts.Why, opts.For) })
}

// Resume ends a pause, the wait for the next attempt, and what has disabled a subscriber. The error is ErrNoSubscriber if there is none.
func (b *Bus) Resume(ctx context.Context, client string) error {
	return subscriptions{b}.set(ctx, client, (*iwebhook.Settings).Resume)
}

// SetSecret has batches signed with another secret; the one before signs beside it for a day. The error is ErrNoSubscriber if there is none.
func (b *Bus) SetSecret(ctx context.Context, client, secret string) error {
	if _, err := parseSecret(secret); err != nil {
		return invalidf("secret: %v", err)
	}
	book := subscriptions{b}
	return book.set(ctx, client, func(w *iwebhook.Settings) { book.sign(client, w, secret) })
}
