package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/store"
	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

func (a *api) publish(w http.ResponseWriter, r *http.Request, c *caller) error {
	topic := r.PathValue("name")
	events, err := a.eventsIn(r, topic)
	if err != nil {
		return err
	}
	sent, err := a.Publish(r.Context(), c.client, events...)
	var invalid *invalidError
	var full *store.FullError
	switch {
	case err == nil:
		last := sent[len(sent)-1]
		w.Header().Set("Runnel-Event", fmt.Sprintf("%s/%d/%s", topic, last.Partition, last.ID))
	case errors.As(err, &invalid) && len(events) == 1:
		return invalid // without its number
	case errors.As(err, &full):
		return refusal(http.StatusServiceUnavailable, fmt.Sprintf("topic %s is full, with %d events%s", topic, full.Length, a.slow(r.Context(), topic, full)))
	}
	return done(w, err)
}

// slow says who keeps a topic full.
func (a *api) slow(ctx context.Context, topic string, full *store.FullError) string {
	if full.Processor != "" {
		return ": processor " + full.Processor + " is the slowest"
	}
	who, _ := a.slowest.look(topic, func() (who string, err error) {
		kind, holder, _ := strings.Cut(full.Holder, ":")
		if kind == "pin" {
			return holder, nil
		}
		partition, _, _ := strings.Cut(holder, ":") // behind it is an epoch
		n, err := strconv.Atoi(partition)
		if err != nil {
			return "", err
		}
		first := delivery.ID{N: 1 << 62}
		for s, err := range a.calls.Subscribers(ctx, n) {
			if s == nil || err != nil {
				continue
			}
			state, err := delivery.ParseState([]byte(cmp.Or(s.State, "{}")))
			if at, needs := state.Positions(s.Settings.Topics)[a.logOf(topic).String()]; err == nil && needs && at.N < first.N {
				first, who = at, s.Name
			}
		}
		return who, nil
	})
	if who == "" {
		return ""
	}
	return ": subscriber " + who + " is the slowest"
}

func (a *api) listTopics(w http.ResponseWriter, r *http.Request, _ *caller) error {
	topics, err := a.Topics(r.Context())
	if err != nil {
		return err
	}
	rows := []any{}
	for _, t := range topics {
		rows = append(rows, map[string]any{
			"name": t.Name, "publisher": orNull(t.Publisher), "events": t.Events, "length": t.Length, "oldest": orNull(max(t.Oldest.Unix(), 0)),
		})
	}
	return reply(w, http.StatusOK, rows)
}

// deletePatience is for how long a topic is being deleted, even if nobody waits: half of it would block the name.
const deletePatience = 30 * time.Second

func (a *api) deleteTopic(w http.ResponseWriter, r *http.Request, c *caller) error {
	topic := r.PathValue("name")
	if t, err := a.calls.Topic(r.Context(), topic); err != nil {
		return err
	} else if t != nil && !c.root && t.Publisher != c.client {
		return fmt.Errorf("topic %s: %w", topic, ErrClaimed)
	}
	return done(w, a.deed(r, c, "topic-rm", topic, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletePatience)
		defer cancel()
		return a.DeleteTopic(ctx, topic)
	}))
}

func (a *api) subscribe(w http.ResponseWriter, r *http.Request, c *caller, name string) error {
	s, format, secret := Subscription{Client: name}, "array", givenSecret{}
	most, wait := number{defaultMax, 1, mostMax}, number{defaultDeadline.Milliseconds(), 0, mostDeadline.Milliseconds()}
	if err := read(r, map[string]any{
		"topics": &s.Topics, "callback": &s.Callback, "uuid": &s.UUID, "timeout": &wait, "max": &most, "format": &format, "secret": &secret,
	}); err != nil {
		return err
	}
	s.Max, s.Timeout, s.Secret = int(most.n), cmp.Or(time.Duration(wait.n)*time.Millisecond, -1), secret.text
	switch s.Format = Format(format); format {
	case "array":
		s.Format = Array
	case "":
		return invalidf("format is empty")
	}
	return secret.answer(w, a.deed(r, c, "subscribe", name, func(ctx context.Context) error { return a.Subscribe(ctx, s) }))
}

func (a *api) setSecret(w http.ResponseWriter, r *http.Request, c *caller, name string) error {
	var secret givenSecret
	if err := read(r, map[string]any{"secret": &secret}); err != nil {
		return err
	}
	return secret.answer(w, a.deed(r, c, "secret", name, func(ctx context.Context) error { return a.SetSecret(ctx, name, secret.text) }))
}

// answer answers with a secret that was made, and nothing else.
func (s *givenSecret) answer(w http.ResponseWriter, err error) error {
	if err != nil || !s.made {
		return done(w, err)
	}
	return reply(w, http.StatusOK, map[string]string{"secret": s.text})
}

func (a *api) unsubscribe(w http.ResponseWriter, r *http.Request, c *caller, name string) error {
	var topics []string
	on := name
	if topic := r.PathValue("topic"); topic != "" {
		s, err := a.calls.Subscriber(r.Context(), a.partition(name), name)
		switch {
		case err != nil:
			return err
		case s.Settings == nil:
			return fmt.Errorf("subscriber %s: %w", name, ErrNoSubscriber)
		}
		if span, there := s.Settings.Topics[a.logOf(topic).String()]; !there || span.End > 0 {
			return refusal(http.StatusNotFound, "subscriber "+name+" has not subscribed to this topic")
		}
		topics, on = []string{topic}, name+"/"+topic
	}
	return done(w, a.deed(r, c, "unsubscribe", on, func(ctx context.Context) error { return a.Unsubscribe(ctx, name, topics...) }))
}

func (a *api) pause(w http.ResponseWriter, r *http.Request, c *caller, name string) error {
	o, last := &PauseOptions{Who: c.client}, number{most: mostPause.Milliseconds()}
	if err := read(r, map[string]any{"why": &o.Why, "for": &last}); err != nil {
		return err
	}
	if len(o.Why) > mostWhy {
		return invalidf("why has more than %d bytes", mostWhy)
	}
	o.For = time.Duration(last.n) * time.Millisecond
	return done(w, a.deed(r, c, "pause", name, func(ctx context.Context) error { return a.Pause(ctx, name, o) }))
}

func (a *api) resume(w http.ResponseWriter, r *http.Request, c *caller, name string) error {
	if err := read(r, nil); err != nil {
		return err
	}
	return done(w, a.deed(r, c, "resume", name, func(ctx context.Context) error { return a.Resume(ctx, name) }))
}

func (a *api) listTokens(w http.ResponseWriter, r *http.Request, _ *caller) error {
	tokens, err := a.Tokens(r.Context())
	if err != nil || len(tokens) == 0 {
		return done(w, err)
	}
	var rows []any
	for _, t := range tokens {
		rows = append(rows, map[string]any{"name": t.Client, "token": t.ID, "roles": t.Roles, "created": t.Created})
	}
	return reply(w, http.StatusOK, rows)
}

func (a *api) makeToken(w http.ResponseWriter, r *http.Request, c *caller) error {
	var name, token string
	var roles []Role
	if err := read(r, map[string]any{"name": &name, "token": &token, "roles": &roles}); err != nil {
		return err
	}
	if err := checkClient(name); err != nil {
		return err
	}
	token = cmp.Or(token, newToken(name))
	if err := a.deed(r, c, "token-add", name, func(ctx context.Context) error { return tokens{a.Bus}.add(ctx, token, name, roles) }); err != nil {
		return err
	}
	return reply(w, http.StatusCreated, map[string]string{"name": name, "token": token})
}

func (a *api) deleteToken(w http.ResponseWriter, r *http.Request, c *caller) error {
	t, err := iwebhook.Tokens{Bus: a.calls}.Named(r.Context(), r.PathValue("id"))
	if err != nil || t == nil {
		return done(w, err)
	}
	return done(w, a.deed(r, c, "token-rm", t.ID(), func(ctx context.Context) error { return tokens{a.Bus}.remove(ctx, t) }))
}

func (a *api) health(w http.ResponseWriter, _ *http.Request, _ *caller) error {
	return reply(w, http.StatusOK, map[string]string{"status": "ok"})
}
