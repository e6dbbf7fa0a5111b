package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A Role is what a token is for.
type Role = string

// Roles of tokens.
const (
	RolePublish   Role = "publish"   // its client's topics
	RoleSubscribe Role = "subscribe" // its client's subscription
	RoleRead      Role = "read"      // all subscriptions in full, but for what is secret
)

// A Token is what can be seen of a token of the HTTP API.
type Token struct {
	ID      string // what RemoveToken takes
	Client  string
	Roles   []Role
	Created time.Time
}

var (
	// ErrNoToken is returned for a token that does not exist.
	ErrNoToken = errors.New("there is no such token")
	// ErrTokenExists is returned to who adds a token that is there already.
	ErrTokenExists = errors.New("there is such a token already")
)

const mostToken = 256

// AddToken makes a token of the HTTP API for a client, and returns it: only its hash is stored. Without roles it may publish and subscribe.
// Other processes that have refused it as unknown may do so for another second. It blocks until the server has answered, or ctx ends.
func (b *Bus) AddToken(ctx context.Context, client string, roles ...Role) (string, error) {
	token := newToken(client)
	if err := (tokens{b}).add(ctx, token, client, roles); err != nil {
		return "", err
	}
	return token, nil
}

func newToken(client string) string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	return client + "--" + hex.EncodeToString(random)
}

// tokens are those of a bus, as the API has them.
type tokens struct{ *Bus }

// find returns what is stored of a token, nil if there is none.
func (b tokens) find(ctx context.Context, token string) (*iwebhook.Token, error) {
	hash := iwebhook.HashOf(token)
	return b.known.look(hash, func() (*iwebhook.Token, error) {
		if err := b.begin(); err != nil {
			return nil, err
		}
		return iwebhook.Tokens{Bus: b.calls}.Find(ctx, hash)
	})
}

// add stores a token: one that AddToken has made, or one of the user's own.
func (b tokens) add(ctx context.Context, token, client string, roles []Role) error {
	if err := checkClient(client); err != nil {
		return err
	}
	switch {
	case len(token) < leastToken || len(token) > mostToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c == ':' || c > '~' }):
		return invalidf("token does not have %d to %d letters, digits and signs but the colon", leastToken, mostToken)
	case token == b.opts.RootToken:
		return ErrTokenExists
	case len(roles) == 0:
		roles = []Role{RolePublish, RoleSubscribe}
	}
	roles = slices.Compact(slices.Sorted(slices.Values(roles)))
	for _, role := range roles {
		if role != RolePublish && role != RoleSubscribe && role != RoleRead {
			return invalidf("role %.40q is none of publish, subscribe and read", role)
		}
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	defer b.known.forget()
	err := iwebhook.Tokens{Bus: b.calls}.Add(ctx, token, &iwebhook.Token{Client: client, Roles: roles, Created: time.Now().UTC().Truncate(time.Second)})
	if errors.Is(err, iwebhook.ErrConflict) {
		err = fmt.Errorf("client %s: %w", client, ErrTokenExists)
	}
	return err
}

// Tokens returns what can be seen of all tokens, by client and time.
func (b *Bus) Tokens(ctx context.Context) (all []Token, err error) {
	if err := b.begin(); err != nil {
		return nil, err
	}
	stored, err := iwebhook.Tokens{Bus: b.calls}.All(ctx)
	for _, t := range stored {
		all = append(all, Token{t.ID(), t.Client, t.Roles, t.Created})
	}
	return all, err
}

// RemoveToken removes a token by its ID, or by the token itself. This process refuses it when RemoveToken has returned, others within a second.
// The error is ErrNoToken if there is none. What its client has subscribed to or publishes stays.
func (b *Bus) RemoveToken(ctx context.Context, id string) error {
	if err := b.begin(); err != nil {
		return err
	}
	t, err := iwebhook.Tokens{Bus: b.calls}.Named(ctx, id)
	if err != nil || t == nil {
		return cmp.Or(err, ErrNoToken)
	}
	return tokens{b}.remove(ctx, t)
}

func (b tokens) remove(ctx context.Context, t *iwebhook.Token) error {
	defer b.known.forget()
	return iwebhook.Tokens{Bus: b.calls}.Remove(ctx, t)
}
