package buses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/internal/words"
)

// states returns the subscribers of buses, the one that is furthest behind first.
func states(ctx context.Context, buses []*bus) ([]*SubscriberState, error) {
	all, now := []*SubscriberState{}, time.Now()
	for _, b := range buses {
		for s, err := range Subscribers(ctx, b.Bus, b.meta.Partitions) {
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *SubscriberState) int {
		return cmp.Or(cmp.Compare(b.age(now), a.age(now)), cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Subscriber, b.Subscriber))
	})
	return all, nil
}

// sumOf returns what subscribers of a bus, or with "" of all, have together, and how many there are by state. The first one has the oldest event.
func sumOf(all []*SubscriberState, bus string) (sum SubscriberState, in map[string]int) {
	in = map[string]int{}
	for _, s := range all {
		if bus == "" || s.Bus == bus {
			sum.Queued, sum.Dropped, sum.Dead = sum.Queued+s.Queued, sum.Dropped+s.Dropped, sum.Dead+s.Dead
			if sum.Oldest.IsZero() {
				sum.Oldest = s.Oldest
			}
			in[s.State]++
		}
	}
	return sum, in
}

func runSubs(ctx context.Context, r *Request) error {
	most := r.Flags.Int(flagLimit)
	if most < 0 {
		return extension.Usagef("--%s %d is negative", flagLimit, most)
	}
	if name := r.Arg(0); name != "" {
		return r.showOne(ctx, name)
	}
	all, err := states(ctx, r.buses)
	if err != nil {
		return err
	}
	if r.Flags.Bool(flagFailing) {
		all = slices.DeleteFunc(all, func(s *SubscriberState) bool { return s.State == stateOK })
	}
	if most > 0 {
		all = all[:min(len(all), most)]
	}
	return r.Print(all, func(t extension.Table) {
		t.Row("BUS", "SUBSCRIBER", "STATE", "QUEUED", "OLDEST", "SENT", "FAILED", "DROPPED", "DEAD", "HOST", "NEXT", "ERROR")
		for _, s := range all {
			t.Row(s.Bus, s.Subscriber, s.State, s.Queued, away(s.Oldest), s.Sent, s.Failed, s.Dropped, s.Dead, words.Dash(s.Host), away(s.Next), words.Dash(s.Error))
		}
	})
}

// away is how far a time is from now, "-" for none.
func away(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return words.Short(time.Since(t).Abs())
}

// showOne prints a subscriber of one of the buses.
func (r *Request) showOne(ctx context.Context, name string) error {
	for _, b := range r.buses {
		s, err := b.find(ctx, name)
		if err != nil {
			return err
		}
		if s != nil {
			return r.Print(s, func(t extension.Table) { fields(t, s) })
		}
	}
	return fmt.Errorf("there is no subscriber %q; see webhook subs", name)
}

// fields writes a row for each field of v in JSON.
func fields(t extension.Table, v any) {
	text, _ := json.Marshal(v) // numbers, texts and times
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		text := string(value)
		_ = json.Unmarshal(value, &text) // which leaves what is no text as it is
		t.Row(name, text)
	}
}

func runTopics(ctx context.Context, r *Request) error {
	subscribers, err := states(ctx, r.buses)
	if err != nil {
		return err
	}
	all := []TopicState{}
	for _, b := range r.buses {
		topics, err := Topics(ctx, b.Bus)
		if err != nil {
			return err
		}
		all = append(all, topics...)
	}
	for i := range all {
		for _, s := range subscribers {
			if s.Bus == all[i].Bus && slices.Contains(s.Settings.Wants(), all[i].Topic) {
				all[i].Subscribers++
			}
		}
	}
	return r.Print(all, func(t extension.Table) {
		t.Row("BUS", "TOPIC", "PUBLISHER", "EVENTS", "LENGTH", "OLDEST", "SUBSCRIBERS")
		for _, one := range all {
			t.Row(one.Bus, one.Topic, words.Dash(one.Publisher), one.Events, one.Length, away(one.Oldest), one.Subscribers)
		}
	})
}

// A TokenState is a token of the HTTP API, without itself.
type TokenState struct {
	Bus     string    `json:"bus"`
	ID      string    `json:"id"`
	Client  string    `json:"client"`
	Roles   []string  `json:"roles"`
	Created time.Time `json:"created"`
}

func runTokens(ctx context.Context, r *Request) error {
	all := []TokenState{}
	for _, b := range r.buses {
		some, err := webhook.Tokens{Bus: b.Bus}.All(ctx)
		if err != nil {
			return err
		}
		for _, t := range some {
			all = append(all, TokenState{b.Name(), t.ID, t.Client, t.Roles, t.Created})
		}
	}
	slices.SortFunc(all, func(a, b TokenState) int {
		return cmp.Or(cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Client, b.Client), a.Created.Compare(b.Created))
	})
	return r.Print(all, func(t extension.Table) {
		t.Row("BUS", "ID", "CLIENT", "ROLES", "CREATED")
		for _, one := range all {
			t.Row(one.Bus, one.ID, one.Client, words.Dash(strings.Join(one.Roles, ", ")), one.Created.Format(time.RFC3339))
		}
	})
}
