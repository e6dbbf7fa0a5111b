package buses

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/webhook"
)

// A BusChange is what a command has done.
type BusChange struct {
	Bus    string `json:"bus"`
	On     string `json:"on"`  // topic, client, or ID of a token
	Did    string `json:"did"` // in words
	Secret string `json:"secret,omitempty"`
	Token  string `json:"token,omitempty"`

	calls Calls
}

// print prints a change.
func (r *request) print(c *BusChange) error {
	return r.Print(c, func(t extension.Table) {
		t.Linef("%s", c.Did)
		for what, text := range map[string]string{"secret": c.Secret, "token": c.Token} {
			if text != "" {
				t.Linef("%s: %s", what, text)
			}
		}
	})
}

// change asks a question, if there is one, does a change between two entries of the audit stream, and prints it; do may set what
// it has made.
func (r *request) change(ctx context.Context, what, on, did, ask string, do func(ctx context.Context, c *BusChange) error) error {
	b, calls, err := r.calls()
	if err == nil && ask != "" {
		err = r.Confirm("%s", ask)
	}
	if err != nil {
		return err
	}
	c := &BusChange{Bus: b.Name(), On: on, Did: did, calls: calls}
	_, err = r.Audited(ctx, "webhook "+what, c.Bus+"/"+on, func(ctx context.Context) (string, error) { return c.Did, do(ctx, c) })
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, on, err)
	}
	return r.print(c)
}

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
	return r.print(&BusChange{Bus: b.Name(), On: topic, Did: "published as " + id})
}

func runSubscribe(ctx context.Context, r *request) error {
	client, topics := r.arg(0), r.Args[2:]
	wants := map[string]any{
		"callback": r.arg(1), "topics": topics, "uuid": r.Flags.String("uuid"), "format": r.Flags.String("format"),
		"max": r.Flags.Int("max"), "timeout": r.Flags.Duration("timeout").Milliseconds(),
	}
	if r.Flags.Bool(flagSecret) {
		wants[flagSecret] = true
	}
	body, err := json.Marshal(wants)
	if err != nil {
		return err
	}
	did := fmt.Sprintf("%s is subscribed to %s", client, strings.Join(topics, ", "))
	return r.change(ctx, "subscribe", client, did, "", func(ctx context.Context, c *BusChange) (err error) {
		c.Secret, err = c.calls.Subscribe(ctx, client, body)
		return err
	})
}

func runUnsubscribe(ctx context.Context, r *request) error {
	client, topics := r.arg(0), r.Args[1:]
	did, ask := "the client "+client+" is forgotten", fmt.Sprintf("forget the client %s, with what is queued for it?", client)
	if len(topics) > 0 {
		all := strings.Join(topics, ", ")
		did, ask = fmt.Sprintf("%s gets nothing more of %s than what is queued", client, all), fmt.Sprintf("end %s for %s?", all, client)
	}
	return r.change(ctx, "unsubscribe", client, did, ask, func(ctx context.Context, c *BusChange) error {
		return c.calls.Unsubscribe(ctx, client, topics...)
	})
}

func runTopicRemove(ctx context.Context, r *request) error {
	topic := r.arg(0)
	did, ask := "topic "+topic+" is removed; what is queued of it is still sent", "remove topic "+topic+", and end all subscriptions to it?"
	return r.change(ctx, "topic rm", topic, did, ask, func(ctx context.Context, c *BusChange) error { return c.calls.DeleteTopic(ctx, topic) })
}

func runTokenAdd(ctx context.Context, r *request) error {
	client := r.arg(0)
	return r.change(ctx, "token add", client, client+" has a token, which is shown only now", "", func(ctx context.Context, c *BusChange) (err error) {
		c.Token, err = c.calls.AddToken(ctx, client, List(r.Flags.String("role")))
		return err
	})
}

// runTokenRemove takes the ID, or the token itself, which is not written down.
func runTokenRemove(ctx context.Context, r *request) error {
	id := webhook.TokenID(r.arg(0))
	return r.change(ctx, "token rm", id, "the token "+id+" is removed", "remove the token "+id+"?", func(ctx context.Context, c *BusChange) error {
		return c.calls.RemoveToken(ctx, r.arg(0))
	})
}
