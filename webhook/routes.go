package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

func (a *api) publish(c *call) (any, error) {
	topic := c.on
	events, err := a.eventsIn(c.Request, topic)
	if err != nil {
		return nil, err
	}
	sent, err := a.Publish(c.Context(), c.client, events...)
	var known *refusal
	var full *store.FullError
	switch {
	case err == nil:
		last := sent[len(sent)-1]
		c.header.Set("Runnel-Event", fmt.Sprintf("%s/%d/%s", topic, last.Partition, last.ID))
	case errors.As(err, &known) && len(events) == 1:
		err = known // without the number of the event
	case errors.As(err, &full):
		err = refusef(http.StatusServiceUnavailable, "topic %s is full, with %d events%s", topic, full.Length, a.slow(c.Context(), topic, full))
	}
	return nil, err
}

// slow names who keeps a topic full, "" for unknown.
func (a *api) slow(ctx context.Context, topic string, full *store.FullError) string {
	who, _ := a.slowest.look(topic, func() (who string, err error) {
		kind, holder, _ := strings.Cut(full.Holder, ":")
		holder, _, _ = strings.Cut(holder, ":") // behind it is what tells pins apart, or an epoch
		switch {
		case kind == "pin":
			return ": subscriber " + holder + " is the slowest", nil
		case full.Processor != "":
			return ": processor " + full.Processor + " is the slowest", nil
		}
		n, err := strconv.Atoi(holder) // the delivery partition whose owner needs the oldest event
		if err != nil {
			return "", err
		}
		first := delivery.ID{N: 1 << 62}
		for s, err := range a.calls.Subscribers(ctx, n) {
			if s == nil || err != nil {
				continue
			}
			if at, needs := s.State.Positions(s.Settings.Topics)[topic]; needs && at.N < first.N {
				first, who = at, ": subscriber "+s.Name+" is the slowest"
			}
		}
		return who, nil
	})
	return who
}

func (a *api) listTopics(c *call) (any, error) {
	topics, err := a.Topics(c.Context())
	rows := []any{}
	for _, t := range topics {
		rows = append(rows, map[string]any{
			"name": t.Name, "publisher": orNull(t.Publisher), "events": t.Events, "length": t.Length, "oldest": orNull(max(t.Oldest.Unix(), 0)),
		})
	}
	return rows, err
}

func (a *api) deleteTopic(c *call) (any, error) {
	if t, err := a.calls.Topic(c.Context(), c.on); err != nil {
		return nil, err
	} else if t != nil && t.Publisher != c.client && !c.is(roleRoot) {
		return nil, ErrClaimed
	}
	return nil, a.deed(c, "topic-rm", nil, func(ctx context.Context) error { return a.DeleteTopic(ctx, c.on) })
}

func (a *api) subscribe(c *call) (any, error) {
	s, secret := Subscription{Client: c.on}, givenSecret{}
	most, wait := number{defaultMax, 1, mostMax}, number{defaultDeadline.Milliseconds(), 0, mostDeadline.Milliseconds()}
	err := a.deed(c, "subscribe", map[string]any{
		"topics": &s.Topics, "callback": &s.Callback, "uuid": &s.UUID, "timeout": &wait, "max": &most, "format": &s.Format, "secret": &secret,
	}, func(ctx context.Context) error {
		s.Max, s.Timeout, s.Secret = int(most.n), cmp.Or(time.Duration(wait.n)*time.Millisecond, -1), secret.text
		return a.Subscribe(ctx, s)
	})
	return secret.made, err
}

func (a *api) setSecret(c *call) (any, error) {
	var secret givenSecret
	err := a.deed(c, "secret", map[string]any{"secret": &secret}, func(ctx context.Context) error { return a.SetSecret(ctx, c.on, secret.text) })
	return secret.made, err
}

func (a *api) unsubscribe(c *call) (any, error) {
	var topics []string
	client := c.on
	if topic := c.PathValue("topic"); topic != "" {
		s, err := a.calls.Subscriber(c.Context(), a.partition(client), client)
		if err == nil && !slices.Contains(s.Settings.Wants(), topic) {
			err = refusef(http.StatusNotFound, "subscriber %s has not subscribed to this topic", client)
		}
		if err != nil {
			return nil, err
		}
		topics, c.on = []string{topic}, client+"/"+topic
	}
	return nil, a.deed(c, "unsubscribe", nil, func(ctx context.Context) error { return a.Unsubscribe(ctx, client, topics...) })
}

func (a *api) pause(c *call) (any, error) {
	return nil, a.deed(c, "pause", nil, func(ctx context.Context) error { return a.Pause(ctx, c.on, &PauseOptions{Who: c.client}) })
}

func (a *api) resume(c *call) (any, error) {
	return nil, a.deed(c, "resume", nil, func(ctx context.Context) error { return a.Resume(ctx, c.on) })
}

func (a *api) listTokens(c *call) (any, error) {
	tokens, err := a.Tokens(c.Context())
	if err != nil || len(tokens) == 0 {
		return nil, err
	}
	var rows []any
	for _, t := range tokens {
		rows = append(rows, map[string]any{"name": t.Client, "token": t.ID, "roles": t.Roles, "created": t.Created})
	}
	return rows, nil
}

func (a *api) makeToken(c *call) (any, error) {
	var token string
	var roles []Role
	c.code = http.StatusCreated
	err := a.deed(c, "token-add", map[string]any{"name": &c.on, "token": &token, "roles": &roles}, func(ctx context.Context) (err error) {
		token, err = storeToken(ctx, a.Bus, c.on, token, roles)
		return err
	})
	return map[string]string{"name": c.on, "token": token}, err
}

// deleteToken ensures that there is no such token. The audit has its ID, whether the path has that or the token.
func (a *api) deleteToken(c *call) (any, error) {
	c.on = iwebhook.TokenID(c.PathValue("id"))
	err := a.deed(c, "token-rm", nil, func(ctx context.Context) error { return a.RemoveToken(ctx, c.on) })
	if errors.Is(err, ErrNoToken) {
		err = nil
	}
	return nil, err
}

func health(*call) (any, error) { return map[string]string{"status": "ok"}, nil }
