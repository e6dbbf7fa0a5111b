package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
)

// Settings are what a subscriber wants. UUID and secrets are sealed.
type Settings struct {
	V          int                      `json:"v"`
	Generation string                   `json:"generation"` // another one after the subscriber was removed and made anew
	Callback   string                   `json:"callback"`
	Topics     map[string]delivery.Span `json:"topics"`
	Max        int                      `json:"max"`
	Timeout    int64                    `json:"timeout"` // ms
	Format     string                   `json:"format,omitempty"`
	UUID       string                   `json:"uuid,omitempty"`
	Secrets    []Secret                 `json:"secrets,omitempty"` // the first one is the present one
	Paused     *Pause                   `json:"paused,omitempty"`
	Resumed    int64                    `json:"resumed,omitempty"` // how often an operator has resumed it
}

// Wants returns the topics that have not ended. There may be no settings.
func (s *Settings) Wants() (topics []string) {
	if s == nil {
		return nil
	}
	for log, span := range s.Topics {
		if topic, _, _ := strings.Cut(log, "/"); span.End == 0 {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// A Secret signs until a time, the zero time for ever.
type Secret struct {
	Sealed string    `json:"sealed"`
	Until  time.Time `json:"until,omitzero"`
}

// A Pause is who holds a subscriber back, why, since when and until when: the zero time, until it is resumed.
type Pause struct {
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// In reports whether the pause holds at a time. There may be none.
func (p *Pause) In(now time.Time) bool { return p != nil && (p.Until.IsZero() || p.Until.After(now)) }

// Pause holds the subscriber back, for a time or, with 0, until it is resumed.
func (s *Settings) Pause(by, why string, last time.Duration) {
	now := time.Now().UTC().Truncate(time.Second)
	s.Paused = &Pause{By: by, Why: why, Since: now}
	if last > 0 {
		s.Paused.Until = now.Add(last)
	}
}

// Resume ends a pause, the wait for the next attempt, and what has disabled the subscriber.
func (s *Settings) Resume() {
	s.Paused = nil
	s.Resumed++
}

// A Subscriber is one as it is stored.
type Subscriber struct {
	Name     string
	Settings *Settings
	Version  string // of the settings
	State    delivery.State
	Saved    int64 // version of the state

	stored string
	wrong  error // why it is not readable
}

// ErrNoSubscriber is returned for a subscriber that does not exist.
var ErrNoSubscriber = errors.New("there is no such subscriber")

// Subscriber returns a subscriber of a delivery partition; its Settings are nil if there is none.
func (b *Bus) Subscriber(ctx context.Context, n int, name string) (*Subscriber, error) {
	some, err := b.read(ctx, n, []string{name})
	if err != nil {
		return nil, err
	}
	return some[0], some[0].wrong
}

// page is how many subscribers are read at once.
const page = 500

// Subscribers returns the subscribers of a delivery partition, in no order. One that is not readable comes with its error, behind
// which others follow; another error is the last.
func (b *Bus) Subscribers(ctx context.Context, n int) iter.Seq2[*Subscriber, error] {
	return func(yield func(*Subscriber, error) bool) {
		names, err := b.client.Retrying.HKeys(ctx, b.key("whconf", n)).Result()
		if err != nil {
			yield(nil, err)
			return
		}
		for some := range slices.Chunk(names, page) {
			all, err := b.read(ctx, n, some)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range all {
				if s.Settings != nil && !yield(s, s.wrong) { // else it was removed meanwhile
					return
				}
			}
		}
	}
}

// read reads subscribers by name. Settings are read behind their version: if they change in between, no batch begins under that
// version. The other way round they would pass for the newer ones.
func (b *Bus) read(ctx context.Context, n int, names []string) (all []*Subscriber, err error) {
	var fields []string
	for _, name := range names {
		fields = append(fields, name, name+":v", name+":s")
	}
	pipe := b.client.Retrying.Pipeline() // no transaction: a full server refuses it
	states, settings := pipe.HMGet(ctx, b.key("whsub", n), fields...), pipe.HMGet(ctx, b.key("whconf", n), names...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for i, name := range names {
		text := func(v any) string { t, _ := v.(string); return t }
		state := states.Val()[3*i:]
		s := &Subscriber{Name: name, Version: text(state[2]), stored: text(settings.Val()[i])}
		s.Saved, _ = strconv.ParseInt(text(state[1]), 10, 64)
		if s.stored != "" {
			s.Settings = &Settings{}
			s.State, s.wrong = delivery.ParseState([]byte(text(state[0])))
			s.wrong = cmp.Or(decode("subscriber", name, s.stored, s.Settings, &s.Settings.V), s.wrong)
		}
		all = append(all, s)
	}
	return all, nil
}

const mostChanges = 20

// Change changes what a subscriber wants; from then on no batch begins under other settings. how changes the Settings of what is stored,
// or sets them to nil, which forgets the subscriber. It may be called again, with what is stored by then. Without a
// subscriber the error is ErrNoSubscriber, unless one is to be made: how gets new Settings then.
func (b *Bus) Change(ctx context.Context, n int, name string, anew bool, how func(s *Subscriber) error) error {
	for range mostChanges {
		s, err := b.Subscriber(ctx, n, name)
		switch {
		case err != nil:
			return err
		case s.Settings == nil && !anew:
			return fmt.Errorf("subscriber %s: %w", name, ErrNoSubscriber)
		case s.Settings == nil:
			s.Settings = &Settings{V: 1, Generation: rand.Text(), Topics: map[string]delivery.Span{}}
		}
		pins := map[pin]bool{} // those that it has had, and of these those that it has
		for topic, span := range s.Settings.Topics {
			pins[pin{topic, span.Pin}] = false
		}
		if err := how(s); err != nil {
			return err
		}
		if s.Settings != nil {
			for topic, span := range s.Settings.Topics {
				pins[pin{topic, span.Pin}] = true
			}
		}
		names := []string{b.key("whconf", n), b.key("whsub", n), b.client.Partition(b.name, Processor, n).Log}
		if _, err = b.swap(ctx, names, name, s.stored, s.Settings); err == nil {
			return b.settlePins(ctx, pins) // the owner may never hear of what is not wanted any more
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("subscriber %s: %w, %d times", name, ErrConflict, mostChanges)
}
