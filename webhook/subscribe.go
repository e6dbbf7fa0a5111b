package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
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
	if s.Format == Single {
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
	var pinned []iwebhook.Log
	book := subscriptions{b}
	err := iwebhook.Subscriptions{Bus: b.calls}.Change(ctx, b.partition(s.Client), s.Client, func(old *iwebhook.Subscriber) (*iwebhook.Settings, error) {
		wants, err := book.wants(&s, old.Settings)
		if err != nil {
			return nil, err
		}
		pinned, err = book.spans(ctx, s.Client, s.Topics, old, wants)
		return wants, err
	})
	for _, log := range pinned {
		if err == nil {
			err = b.calls.KeepPin(ctx, log, s.Client)
		}
	}
	return err
}

// subscriptions are what subscribers of a bus want, as it is stored.
type subscriptions struct{ *Bus }

// What of a subscriber is sealed.
const (
	fieldUUID   = "uuid"
	fieldSecret = "secret"
)

// wants returns the settings of a subscription, without topics.
func (b subscriptions) wants(s *Subscription, old *iwebhook.Settings) (*iwebhook.Settings, error) {
	w := &iwebhook.Settings{Generation: rand.Text(), Callback: s.Callback, Max: s.Max, Timeout: s.Timeout.Milliseconds(), Format: string(s.Format)}
	if old != nil {
		w.Generation, w.Paused, w.Resumed = old.Generation, old.Paused, old.Resumed
	}
	before, uuid := iwebhook.Secret{}, ""
	if old != nil {
		uuid = old.UUID
		if len(old.Secrets) > 0 {
			before = old.Secrets[0]
		}
	}
	var err error
	if w.UUID, err = b.resealed(s.Client, fieldUUID, s.UUID, uuid); err != nil || s.Secret == "" {
		return w, err
	}
	sealed, err := b.resealed(s.Client, fieldSecret, s.Secret, before.Sealed)
	switch w.Secrets = []iwebhook.Secret{{Sealed: sealed}}; before.Sealed {
	case "":
	case sealed:
		w.Secrets = old.Secrets
	default:
		before.Until = time.Now().Add(rotation).UTC().Truncate(time.Second)
		w.Secrets = append(w.Secrets, before)
	}
	return w, err
}

// resealed seals a text, unless it is what is stored: then nothing changes.
func (b subscriptions) resealed(client, field, text, stored string) (string, error) {
	if text == "" {
		return "", nil
	}
	if was, err := b.open(client, field, stored); err == nil && was == text {
		return stored, nil
	}
	return b.seal.seal(text, sealPlace{b.calls.Client().Keys().App, b.name, client, field}), nil
}

// open opens what was sealed of a subscriber.
func (b subscriptions) open(client, field, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	return b.seal.open(sealed, sealPlace{b.calls.Client().Keys().App, b.name, client, field})
}

// spans sets from where to where a subscriber gets each topic, and returns the logs of those that are new to it: they are pinned.
func (b subscriptions) spans(ctx context.Context, client string, topics []string, old *iwebhook.Subscriber, wants *iwebhook.Settings) (pinned []iwebhook.Log, err error) {
	wants.Topics = map[string]delivery.Span{}
	var state delivery.State
	if old.Settings != nil {
		wants.Topics = maps.Clone(old.Settings.Topics)
	}
	if old.State != "" {
		if state, err = delivery.ParseState([]byte(old.State)); err != nil {
			return nil, err
		}
	}
	named := map[string]bool{}
	for _, topic := range topics {
		log := b.logOf(topic)
		named[log.String()] = true
		if span, there := wants.Topics[log.String()]; there && (span.End == 0 || !state.Seen(log.String(), span)) {
			span.End = 0 // what is queued of one that the owner has not begun yet is not lost
			wants.Topics[log.String()] = span
			continue
		}
		from, err := b.calls.Pin(ctx, log, client)
		if err != nil {
			return pinned, err
		}
		wants.Topics[log.String()], pinned = delivery.Span{From: from}, append(pinned, log)
	}
	return pinned, b.end(ctx, wants, func(log iwebhook.Log) bool { return !named[log.String()] })
}

// end ends the topics of settings that it chooses where they are now.
func (b subscriptions) end(ctx context.Context, wants *iwebhook.Settings, chosen func(iwebhook.Log) bool) error {
	var ending []iwebhook.Log
	for name, span := range wants.Topics {
		log, err := iwebhook.ParseLog(name)
		if err != nil {
			return err
		}
		if span.End == 0 && chosen(log) {
			ending = append(ending, log)
		}
	}
	if len(ending) == 0 {
		return nil
	}
	extents, err := b.calls.Extents(ctx, ending)
	for log, e := range extents {
		span := wants.Topics[log.String()]
		if span.End = e.Last.N; span.End == 0 {
			delete(wants.Topics, log.String()) // it never had an event
		} else {
			wants.Topics[log.String()] = span
		}
	}
	return err
}

// reach is ready, for a subscriber of this name.
func (b subscriptions) reach(ctx context.Context, client string) error {
	if err := checkClient(client); err != nil {
		return err
	}
	return b.ready(ctx)
}

// changeStored changes the settings of a subscriber that is there.
func (b subscriptions) changeStored(ctx context.Context, client string, how func(wants *iwebhook.Settings) error) error {
	if err := b.reach(ctx, client); err != nil {
		return err
	}
	return iwebhook.Subscriptions{Bus: b.calls}.ChangeStored(ctx, b.partition(client), client, how)
}

// Unsubscribe ends topics, or without any all of it: then what is queued is forgotten. No request begins after it returned, but for what is
// queued of topics that have ended. The error is ErrNoSubscriber if there is none.
func (b *Bus) Unsubscribe(ctx context.Context, client string, topics ...string) error {
	if len(topics) > 0 {
		return subscriptions{b}.changeStored(ctx, client, func(wants *iwebhook.Settings) error {
			return subscriptions{b}.end(ctx, wants, func(log iwebhook.Log) bool { return slices.Contains(topics, log.Topic) })
		})
	}
	if err := (subscriptions{b}).reach(ctx, client); err != nil {
		return err
	}
	return iwebhook.Subscriptions{Bus: b.calls}.Change(ctx, b.partition(client), client, func(old *iwebhook.Subscriber) (*iwebhook.Settings, error) {
		if old.Settings == nil {
			return nil, fmt.Errorf("subscriber %s: %w", client, ErrNoSubscriber)
		}
		return nil, nil
	})
}

// endSubscriptions ends a topic for all subscribers.
func (b subscriptions) endAll(ctx context.Context, topic string) error {
	name := b.logOf(topic).String()
	for n := range b.stream.Meta.Partitions {
		for s, err := range b.calls.Subscribers(ctx, n) {
			if s == nil {
				return err
			}
			if span, there := s.Settings.Topics[name]; err != nil || !there || span.End > 0 {
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
	var o PauseOptions
	if opts != nil {
		o = *opts
	}
	if err := (subscriptions{b}).reach(ctx, client); err != nil {
		return err
	}
	return iwebhook.Subscriptions{Bus: b.calls}.Pause(ctx, b.partition(client), client, o.Who, o.Why, o.For)
}

// Resume ends a pause, the wait for the next attempt, and what has disabled a subscriber. The error is ErrNoSubscriber if there is none.
func (b *Bus) Resume(ctx context.Context, client string) error {
	if err := (subscriptions{b}).reach(ctx, client); err != nil {
		return err
	}
	return iwebhook.Subscriptions{Bus: b.calls}.Resume(ctx, b.partition(client), client)
}

// SetSecret has batches signed with another secret; the one before signs beside it for a day. The error is ErrNoSubscriber if there is none.
func (b *Bus) SetSecret(ctx context.Context, client, secret string) error {
	if _, err := parseSecret(secret); err != nil {
		return invalidf("secret: %v", err)
	}
	return subscriptions{b}.changeStored(ctx, client, func(wants *iwebhook.Settings) error {
		next, err := subscriptions{b}.wants(&Subscription{Client: client, Secret: secret}, wants)
		if err == nil {
			wants.Secrets = next.Secrets
		}
		return err
	})
}
