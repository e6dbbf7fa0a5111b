package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delivery"
)

// Settings are what a subscriber wants. UUID and secrets are sealed.
type Settings struct {
	V          int                      `json:"v"`
	Generation string                   `json:"generation"` // another one after the subscriber was removed and made anew
	Callback   string                   `json:"callback"`
	Topics     map[string]delivery.Span `json:"topics"` // by log
	Max        int                      `json:"max"`
	Timeout    int64                    `json:"timeout"` // ms
	Format     string                   `json:"format,omitempty"`
	UUID       string                   `json:"uuid,omitempty"`
	Secrets    []Secret                 `json:"secrets,omitempty"` // the first one is the present one
	Paused     *Pause                   `json:"paused,omitempty"`
	Resumed    int64                    `json:"resumed,omitempty"` // how often an operator has resumed it
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

// A Subscriber is one as it is stored.
type Subscriber struct {
	Name     string
	Settings *Settings
	Version  string // of the settings
	State    string // JSON of a delivery.State, "" before the first save
	Saved    int64  // version of the state

	stored string
}

func (s *Subscriber) read(settings string, state []any) error {
	text := func(i int) string { t, _ := state[i].(string); return t }
	s.stored, s.State, s.Version, s.Settings = settings, text(0), text(2), &Settings{}
	_, _ = fmt.Sscan(text(1), &s.Saved)
	return decode("subscriber", s.Name, settings, s.Settings, func(s *Settings) int { return s.V })
}

// Subscriber returns a subscriber of a delivery partition; its Settings are nil if there is none.
func (b *Bus) Subscriber(ctx context.Context, n int, name string) (*Subscriber, error) {
	pipe := b.client.Retrying.Pipeline() // no transaction: a full server refuses it
	state := pipe.HMGet(ctx, b.key("whsub", n), name, name+":v", name+":s")
	settings := pipe.HGet(ctx, b.key("whconf", n), name) // behind their version: see together
	s := &Subscriber{Name: name}
	if _, err := pipe.Exec(ctx); err == redis.Nil { //nolint:errorlint // Exec returns it as it is
		return s, nil
	} else if err != nil {
		return nil, err
	}
	return s, s.read(settings.Val(), state.Val())
}

// page is how many subscribers are asked for at once.
const page = 500

// Subscribers returns the subscribers of a delivery partition, in no order. One that is not readable comes with its error, behind
// which others follow; another error is the last.
func (b *Bus) Subscribers(ctx context.Context, n int) iter.Seq2[*Subscriber, error] {
	return func(yield func(*Subscriber, error) bool) {
		for cursor := uint64(0); ; {
			pairs, next, err := b.client.Retrying.HScan(ctx, b.key("whconf", n), cursor, "", page).Result()
			var settings []any
			var states [][]any
			if err == nil {
				settings, states, err = b.together(ctx, n, pairs)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i, state := range states {
				text, there := settings[i].(string)
				if !there {
					continue // it was removed meanwhile
				}
				s := &Subscriber{Name: pairs[2*i]}
				if err := s.read(text, state); !yield(s, err) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// together reads settings and states of subscribers, whose names are every other one of pairs. Settings are read behind their
// version: if they change in between, no batch begins under that version. The other way round they would pass for the newer ones.
func (b *Bus) together(ctx context.Context, n int, pairs []string) (settings []any, states [][]any, err error) {
	if len(pairs) == 0 {
		return nil, nil, nil
	}
	var names, fields []string
	for i := 0; i < len(pairs); i += 2 {
		names, fields = append(names, pairs[i]), append(fields, pairs[i], pairs[i]+":v", pairs[i]+":s")
	}
	pipe := b.client.Retrying.Pipeline()
	all, wants := pipe.HMGet(ctx, b.key("whsub", n), fields...), pipe.HMGet(ctx, b.key("whconf", n), names...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, err
	}
	for left := all.Val(); len(left) > 0; left = left[3:] {
		states = append(states, left[:3])
	}
	return wants.Val(), states, nil
}

// Want replaces what a subscriber wants, as s was read, and returns the version of the settings. Nil settings forget the
// subscriber. From then on no batch begins under other settings. It may be repeated. The error is ErrConflict if other settings
// were stored meanwhile.
func (b *Bus) Want(ctx context.Context, n int, s *Subscriber, wants *Settings) (version string, err error) {
	text := ""
	if wants != nil {
		wants.V = 1
		data, err := json.Marshal(wants)
		if err != nil {
			return "", err
		}
		text = string(data)
	}
	log := b.client.Partition(b.name, Processor, n).Log
	version, err = b.do(ctx, "want", []string{b.key("whconf", n), b.key("whsub", n), log}, s.Name, s.stored, text)
	if err == nil && version == "" {
		err = ErrConflict
	}
	return version, err
}
