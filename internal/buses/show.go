package buses

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/internal/words"
)

// states returns the subscribers of a bus, or with "" of all, the one that is furthest behind first.
func states(ctx context.Context, c *store.Client, name string) ([]*SubscriberState, error) {
	buses, err := load(ctx, c, name)
	all := []*SubscriberState{}
	for _, b := range buses {
		some, err := Subscribers(ctx, b.Bus, b.meta.Partitions)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	now := time.Now()
	slices.SortFunc(all, func(a, b *SubscriberState) int {
		return cmp.Or(cmp.Compare(b.age(now), a.age(now)), cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Subscriber, b.Subscriber))
	})
	return all, err
}

func runSubs(ctx context.Context, env *extension.Env, _ []*bus) error {
	most := env.Flags.Int(flagLimit)
	if most < 0 {
		return extension.Usagef("--%s %d is negative", flagLimit, most)
	}
	all, err := states(ctx, env.Client, env.Flags.String(flagBus))
	if err != nil {
		return err
	}
	if len(env.Args) > 0 {
		at := slices.IndexFunc(all, func(s *SubscriberState) bool { return s.Subscriber == env.Args[0] })
		if at < 0 {
			return fmt.Errorf("there is no subscriber %q; see webhook subs", env.Args[0])
		}
		text, _ := json.MarshalIndent(all[at], "", "  ") // numbers, texts and times
		return env.Print(all[at], func(t extension.Table) { t.Linef("%s", text) })
	}
	if env.Flags.Bool(flagFailing) {
		all = slices.DeleteFunc(all, func(s *SubscriberState) bool { return s.State == stateOK })
	}
	if most > 0 {
		all = all[:min(len(all), most)]
	}
	return env.Print(all, func(t extension.Table) {
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

func runTopics(ctx context.Context, env *extension.Env, buses []*bus) error {
	all := []TopicState{}
	for _, b := range buses {
		topics, err := Topics(ctx, b.Bus)
		if err != nil {
			return err
		}
		all = append(all, topics...)
	}
	return env.Print(all, func(t extension.Table) {
		t.Row("BUS", "TOPIC", "PUBLISHER", "EVENTS", "LENGTH", "OLDEST")
		for _, one := range all {
			t.Row(one.Bus, one.Topic, words.Dash(one.Publisher), one.Events, one.Length, away(one.Oldest))
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

func runTokens(ctx context.Context, env *extension.Env, buses []*bus) error {
	all := []TokenState{}
	for _, b := range buses {
		some, err := webhook.Tokens{Bus: b.Bus}.All(ctx)
		if err != nil {
			return err
		}
		for _, t := range some {
			all = append(all, TokenState{b.Name(), t.ID, t.Client, t.Roles, t.Created})
		}
	}
	return env.Print(all, func(t extension.Table) {
		t.Row("BUS", "ID", "CLIENT", "ROLES", "CREATED")
		for _, one := range all {
			t.Row(one.Bus, one.ID, one.Client, words.Dash(strings.Join(one.Roles, ", ")), one.Created.Format(time.RFC3339))
		}
	})
}
