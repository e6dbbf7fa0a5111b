package webhook

import (
	"cmp"
	"context"
	"encoding/json"
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

// headerEvent is the header of an answer that names the last event published.
const headerEvent = "Runnel-Event"

func (a *api) publish(w http.ResponseWriter, r *http.Request, c *caller) error {
	topic := r.PathValue("name")
	if err := a.checkTopic(topic); err != nil {
		return err
	}
	events, array, err := eventsIn(r, topic)
	if err != nil {
		return err
	}
	if array {
		if err := a.checkTogether(events, r.ContentLength); err != nil {
			return err
		}
	}
	sent, err := a.Publish(r.Context(), c.client, events...)
	var invalid *invalidError
	var full *store.FullError
	switch {
	case err == nil:
		last := sent[len(sent)-1]
		w.Header().Set(headerEvent, fmt.Sprintf("%s/%d/%s", topic, last.Partition, last.ID))
	case errors.As(err, &invalid) && !array:
		return invalid // without its number
	case errors.As(err, &full):
		return unavailable(fmt.Sprintf("topic %s is full, with %d events%s", topic, full.Length, a.slow(r.Context(), topic, full)))
	}
	return done(w, err)
}

// checkTogether returns an error unless events are appended in one call, all or none. request is the
// length of the body: a short one needs no closer look.
func (a *api) checkTogether(events []Event, request int64) error {
	if int64(len(events)) > a.opts.MaxLen {
		return invalidf("%d events: a topic has %d at most", len(events), a.opts.MaxLen)
	}
	if request >= 0 && request < mostArray/2 {
		return nil
	}
	size := 0
	for _, e := range events {
		text, err := a.payload(e)
		if err != nil {
			return nil //nolint:nilerr // Publish says where
		}
		size += len(payloadField) + len(text)
	}
	if size > mostArray {
		return refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("the events have %d bytes as they are stored, more than %d", size, mostArray))
	}
	return nil
}

// slow says who keeps a topic full.
func (a *api) slow(ctx context.Context, topic string, full *store.FullError) string {
	log := a.logOf(topic)
	who, known := a.slowest.of(topic)
	switch of, name, _ := strings.Cut(full.Holder, ":"); {
	case known:
	case of == "pin":
		who = name
	case of == "deliver":
		number, _, _ := strings.Cut(name, ":") // behind it is an epoch
		n, _ := strconv.Atoi(number)
		first := delivery.ID{N: 1 << 62}
		for s, err := range a.calls.Subscribers(ctx, n) {
			if s == nil || err != nil {
				continue
			}
			var state delivery.State
			if s.State != "" {
				if state, err = delivery.ParseState([]byte(s.State)); err != nil {
					continue
				}
			}
			if at, needs := state.Positions(s.Settings.Topics)[log.String()]; needs && at.N < first.N {
				first, who = at, s.Name
			}
		}
		a.slowest.set(topic, who)
	case full.Processor != "":
		return ": processor " + full.Processor + " is the slowest"
	}
	if who == "" {
		return ""
	}
	return ": subscriber " + who + " is the slowest"
}

func (a *api) listTopics(w http.ResponseWriter, r *http.Request, _ *caller) error {
	type row struct {
		Name      string  `json:"name"`
		Publisher *string `json:"publisher"`
		Events    int64   `json:"events"`
		Length    int64   `json:"length"`
		Oldest    *int64  `json:"oldest"`
	}
	topics, err := a.Topics(r.Context())
	if err != nil {
		return err
	}
	rows := make([]row, len(topics))
	for i, t := range topics {
		rows[i] = row{t.Name, orNull(t.Publisher), t.Events, t.Length, orNull(max(t.Oldest.Unix(), 0))}
	}
	return reply(w, http.StatusOK, rows)
}

// deletePatience is for how long a topic is being deleted, even if nobody waits: half of it would block the name.
const deletePatience = 30 * time.Second

func (a *api) deleteTopic(w http.ResponseWriter, r *http.Request, c *caller) error {
	topic := r.PathValue("name")
	t, err := a.calls.Topic(r.Context(), topic)
	switch {
	case err != nil:
		return err
	case t == nil:
		return fmt.Errorf("topic %.80q: %w", topic, ErrNoTopic)
	case !c.root && t.Publisher != c.client:
		return fmt.Errorf("topic %s: %w", topic, ErrClaimed)
	}
	return done(w, a.deed(r, c, "topic-rm", topic, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletePatience)
		defer cancel()
		return a.DeleteTopic(ctx, topic)
	}))
}

// whose returns whose subscription a request is about: the caller's, or what the path or root names.
func whose(r *http.Request, c *caller) (string, error) {
	named := cmp.Or(r.PathValue("name"), r.URL.Query().Get("subscriber"))
	switch {
	case named == "" && c.root:
		return "", invalidf("root has no subscription: name one with ?subscriber=")
	case named != "" && !c.root && named != c.client:
		return "", refusal(http.StatusForbidden, "this is the subscription of another client")
	}
	name := cmp.Or(named, c.client)
	return name, checkClient(name)
}

func (a *api) subscribe(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, err := whose(r, c)
	if err != nil {
		return err
	}
	text, err := bodyOfRequest(r, false)
	if err != nil {
		return err
	}
	s, made, err := subscriptionOf(text, name)
	if err == nil {
		err = a.deed(r, c, "subscribe", name, func(ctx context.Context) error { return a.Subscribe(ctx, s) })
	}
	return a.withSecret(w, s.Secret, made, err)
}

// withSecret answers with a secret that was made, and nothing else.
func (a *api) withSecret(w http.ResponseWriter, secret string, made bool, err error) error {
	if err != nil || !made {
		return done(w, err)
	}
	return reply(w, http.StatusOK, map[string]string{"secret": secret})
}

func (a *api) setSecret(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, err := whose(r, c)
	if err != nil {
		return err
	}
	text, err := bodyOfRequest(r, false)
	if err != nil {
		return err
	}
	var field json.RawMessage
	if err := fields(text, map[string]any{"secret": &field}); err != nil {
		return err
	}
	secret, made, err := secretOf(field)
	if err == nil {
		err = a.deed(r, c, "secret", name, func(ctx context.Context) error { return a.SetSecret(ctx, name, secret) })
	}
	return a.withSecret(w, secret, made, err)
}

func (a *api) unsubscribe(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, err := whose(r, c)
	if err != nil {
		return err
	}
	var topics []string
	on := name
	if topic := r.PathValue("topic"); topic != "" {
		s, err := a.calls.Subscriber(r.Context(), a.partition(name), name)
		if err != nil {
			return err
		}
		if s.Settings == nil {
			return fmt.Errorf("subscriber %s: %w", name, ErrNoSubscriber)
		}
		if span, there := s.Settings.Topics[a.logOf(topic).String()]; !there || span.End > 0 {
			return refusal(http.StatusNotFound, "subscriber "+name+" has not subscribed to this topic")
		}
		topics, on = []string{topic}, name+"/"+topic
	}
	return done(w, a.deed(r, c, "unsubscribe", on, func(ctx context.Context) error { return a.Unsubscribe(ctx, name, topics...) }))
}

func (a *api) pause(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, err := whose(r, c)
	if err != nil {
		return err
	}
	o, ms := &PauseOptions{Who: c.client}, new(int64)
	if err := optional(r, map[string]any{"why": &o.Why, "for": &ms}); err != nil {
		return err
	}
	if *ms < 0 || *ms > mostPause.Milliseconds() || len(o.Why) > mostWhy {
		return invalidf("for is not in 0 to %d ms, or why has more than %d bytes", mostPause.Milliseconds(), mostWhy)
	}
	o.For = time.Duration(*ms) * time.Millisecond
	return done(w, a.deed(r, c, "pause", name, func(ctx context.Context) error { return a.Pause(ctx, name, o) }))
}

func (a *api) resume(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, err := whose(r, c)
	if err == nil {
		err = optional(r, nil)
	}
	if err != nil {
		return err
	}
	return done(w, a.deed(r, c, "resume", name, func(ctx context.Context) error { return a.Resume(ctx, name) }))
}

func (a *api) listTokens(w http.ResponseWriter, r *http.Request, _ *caller) error {
	type row struct {
		Name    string    `json:"name"`
		Token   string    `json:"token"` // its ID
		Roles   []Role    `json:"roles"`
		Created time.Time `json:"created"`
	}
	tokens, err := a.Tokens(r.Context())
	if err != nil || len(tokens) == 0 {
		return done(w, err)
	}
	rows := make([]row, len(tokens))
	for i, t := range tokens {
		rows[i] = row{t.Client, t.ID, t.Roles, t.Created}
	}
	return reply(w, http.StatusOK, rows)
}

func (a *api) addToken(w http.ResponseWriter, r *http.Request, c *caller) error {
	text, err := bodyOfRequest(r, false)
	if err != nil {
		return err
	}
	var name, token string
	var roles []Role
	if err := fields(text, map[string]any{"name": &name, "token": &token, "roles": &roles}); err != nil {
		return err
	}
	if err := checkClient(name); err != nil {
		return err
	}
	err = a.deed(r, c, "token-add", name, func(ctx context.Context) (err error) {
		if token != "" {
			return a.tokens.add(ctx, token, name, roles)
		}
		token, err = a.AddToken(ctx, name, roles...)
		return err
	})
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, map[string]string{"name": name, "token": token})
}

func (a *api) removeToken(w http.ResponseWriter, r *http.Request, c *caller) error {
	id := r.PathValue("id")
	err := a.deed(r, c, "token-rm", iwebhook.TokenID(id), func(ctx context.Context) error { return a.RemoveToken(ctx, id) })
	if errors.Is(err, ErrNoToken) {
		err = nil
	}
	return done(w, err)
}

func (a *api) health(w http.ResponseWriter, _ *http.Request, _ *caller) error {
	return reply(w, http.StatusOK, map[string]string{"status": "ok"})
}
