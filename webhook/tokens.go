package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
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

// A Token is what can be seen of a token of the HTTP API: its ID, which RemoveToken takes, its Client and Roles, and when it was Created.
type Token = iwebhook.Token

var (
	// ErrNoToken is returned for a token that does not exist.
	ErrNoToken = iwebhook.ErrNoToken
	// ErrTokenExists is returned to who adds a token that is there already.
	ErrTokenExists = refusef(http.StatusConflict, "there is such a token already")
)

const mostToken = 256

// AddToken makes a token of the HTTP API for a client, and returns it: only its hash is stored. Without roles it may publish and subscribe.
// Other processes that have refused it as unknown may do so for another second. It blocks until the server has answered, or ctx ends.
func (b *Bus) AddToken(ctx context.Context, client string, roles ...Role) (string, error) {
	return storeToken(ctx, b, client, "", roles)
}

// storeToken stores a token: one of the user's own, or for "" a new one.
func storeToken(ctx context.Context, b *Bus, client, token string, roles []Role) (string, error) {
	if err := checkClient(client); err != nil {
		return "", err
	}
	if token == "" {
		random := make([]byte, 16)
		_, _ = rand.Read(random) // it never fails
		token = fmt.Sprintf("%s--%x", client, random)
	}
	switch {
	case len(token) < leastToken || len(token) > mostToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c == ':' || c > '~' }):
		return "", invalidf("token does not have %d to %d letters, digits and signs but the colon", leastToken, mostToken)
	case token == b.opts.RootToken:
		return "", ErrTokenExists
	case len(roles) == 0:
		roles = []Role{RolePublish, RoleSubscribe}
	}
	roles = slices.Compact(slices.Sorted(slices.Values(roles)))
	for _, role := range roles {
		if !slices.Contains([]Role{RolePublish, RoleSubscribe, RoleRead}, role) {
			return "", invalidf("role %.40q is none of publish, subscribe and read", role)
		}
	}
	if err := b.ready(ctx); err != nil {
		return "", err
	}
	defer b.known.forget()
	err := iwebhook.Tokens{Bus: b.calls}.Add(ctx, token, Token{Client: client, Roles: roles, Created: time.Now().UTC().Truncate(time.Second)})
	if errors.Is(err, iwebhook.ErrConflict) {
		err = fmt.Errorf("client %s: %w", client, ErrTokenExists)
	}
	return token, err
}

// Tokens returns what can be seen of all tokens, by client and time.
func (b *Bus) Tokens(ctx context.Context) ([]Token, error) {
	if err := b.begin(); err != nil {
		return nil, err
	}
	return iwebhook.Tokens{Bus: b.calls}.All(ctx)
}

// RemoveToken removes a token by its ID, or by the token itself. This process refuses it when RemoveToken has returned, others within a second.
// The error is ErrNoToken if there is none. What its client has subscribed to or publishes stays.
func (b *Bus) RemoveToken(ctx context.Context, id string) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.known.forget()
	return iwebhook.Tokens{Bus: b.calls}.Remove(ctx, id)
}
