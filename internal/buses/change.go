package buses

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/webhook"
	"github.com/runnel-go/runnel/internal/words"
)

func runPublish(ctx context.Context, r *request) error {
	b, calls, err := r.calls()
	if err != nil {
		return err
	}
	client, topic := r.Flags.String(flagClient), r.arg(0)
	if client == "" {
		return extension.Usagef("as which client? say --%s NAME: the first one that publishes to a topic keeps it", flagClient)
	}
	id, err := calls.Publish(ctx, client, topic, r.arg(1))
	if err != nil {
		return fmt.Errorf("publish to %s: %w", topic, err)
	}
	return r.done(&BusChange{Bus: b.name, On: topic, Did: "published as " + id})
}

func runSubscribe(ctx context.Context, r *request) error {
	b, calls, err := r.calls()
	if err != nil {
		return err
	}
	w := &Wish{
		Client: r.arg(0), Callback: r.arg(1), Topics: r.Args[2:], UUID: r.Flags.String("uuid"), Format: r.Flags.String("format"),
		Max: r.Flags.Int("max"), Timeout: cmp.Or(r.Flags.Duration("timeout"), -1), Secret: r.Flags.Bool(flagSecret),
	}
	if w.Format != "array" && w.Format != "single" {
		return extension.Usagef("--format %q is neither array nor single", w.Format)
	}
	change := &BusChange{Bus: b.name, On: w.Client}
	return r.audited(ctx, "subscribe", change, func(ctx context.Context) (err error) {
		change.Secret, err = calls.Subscribe(ctx, w)
		change.Did = fmt.Sprintf("%s is subscribed to %s", w.Client, strings.Join(w.Topics, ", "))
		return err
	})
}

func runUnsubscribe(ctx context.Context, r *request) error {
	b, calls, err := r.calls()
	if err != nil {
		return err
	}
	client, topics := r.arg(0), r.Args[1:]
	did, ask := "the client "+client+" is forgotten", fmt.Sprintf("forget the client %s, with what is queued for it?", client)
	if len(topics) > 0 {
		all := strings.Join(topics, ", ")
		did, ask = fmt.Sprintf("%s gets nothing more of %s than what is queued", client, all), fmt.Sprintf("end %s for %s?", all, client)
	}
	if err := r.Confirm("%s", ask); err != nil {
		return err
	}
	change := &BusChange{Bus: b.name, On: client, Did: did}
	return r.audited(ctx, "unsubscribe", change, func(ctx context.Context) error { return calls.Unsubscribe(ctx, client, topics...) })
}

func runTopicRemove(ctx context.Context, r *request) error {
	b, calls, err := r.calls()
	if err == nil {
		err = r.Confirm("remove topic %s, and end all subscriptions to it?", r.arg(0))
	}
	if err != nil {
		return err
	}
	change := &BusChange{Bus: b.name, On: r.arg(0), Did: "topic " + r.arg(0) + " is removed; what is queued of it is still sent"}
	return r.audited(ctx, "topic rm", change, func(ctx context.Context) error { return calls.DeleteTopic(ctx, r.arg(0)) })
}

func runTopicRelease(ctx context.Context, r *request) error {
	b, err := r.one()
	if err != nil {
		return err
	}
	name := r.arg(0)
	t, err := b.Topic(ctx, name)
	switch {
	case err != nil:
		return err
	case t == nil:
		return fmt.Errorf("bus %s has no topic %q", b.name, name)
	}
	if err := r.Confirm("let another client publish to %s, whose publisher is %s?", name, cmp.Or(t.Publisher, "none")); err != nil {
		return err
	}
	change := &BusChange{Bus: b.name, On: name, Did: fmt.Sprintf("topic %s has no publisher any more; it was %s", name, cmp.Or(t.Publisher, "none"))}
	return r.audited(ctx, "topic release", change, func(ctx context.Context) error {
		free := *t
		free.Publisher = ""
		return b.SetTopic(ctx, name, t, &free)
	})
}

func runTokenAdd(ctx context.Context, r *request) error {
	b, calls, err := r.calls()
	if err != nil {
		return err
	}
	change := &BusChange{Bus: b.name, On: r.arg(0)}
	return r.audited(ctx, "token add", change, func(ctx context.Context) (err error) {
		change.Token, err = calls.AddToken(ctx, change.On, list(r.Flags.String("role")))
		change.Did = fmt.Sprintf("%s has a token, which is shown only now", change.On)
		return err
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

func runTokens(ctx context.Context, r *request) error {
	all := []TokenState{}
	for _, b := range r.buses {
		some, err := webhook.Tokens{Bus: b.Bus}.All(ctx)
		if err != nil {
			return err
		}
		for _, t := range some {
			all = append(all, TokenState{b.name, t.ID(), t.Client, t.Roles, t.Created})
		}
	}
	slices.SortFunc(all, func(a, b TokenState) int {
		return cmp.Or(cmp.Compare(a.Bus, b.Bus), cmp.Compare(a.Client, b.Client), a.Created.Compare(b.Created))
	})
	return r.Print(all, func(t extension.Table) {
		t.Row("BUS", "ID", "CLIENT", "ROLES", "CREATED")
		for _, one := range all {
			t.Row(one.Bus, one.ID, one.Client, words.Dash(strings.Join(one.Roles, ", ")), moment(&one.Created))
		}
	})
}

// runTokenRemove takes the ID, or the token itself, which is not written down.
func runTokenRemove(ctx context.Context, r *request) error {
	b, err := r.one()
	if err != nil {
		return err
	}
	tokens := webhook.Tokens{Bus: b.Bus}
	found, err := tokens.Find(ctx, r.arg(0))
	if err != nil {
		return err
	}
	all, err := tokens.All(ctx)
	for _, t := range all {
		if t.ID() == r.arg(0) {
			found = t
		}
	}
	if err != nil || found == nil {
		return cmp.Or(err, fmt.Errorf("bus %s has no such token; see webhook token ls", b.name))
	}
	if err := r.Confirm("remove the token %s of %s?", found.ID(), found.Client); err != nil {
		return err
	}
	change := &BusChange{Bus: b.name, On: found.ID(), Did: "the token " + found.ID() + " of " + found.Client + " is removed"}
	return r.audited(ctx, "token rm", change, func(ctx context.Context) error {
		_, err := tokens.Remove(ctx, found.ID())
		return err
	})
}
