package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	iwebhook "github.com/runnel-go/runnel/internal/webhook"
)

// A Role is what a token is for.
type Role string

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

const (
	mostToken   = 256
	mostKnown   = 4096        // tokens that a process remembers
	tokenMemory = time.Second // for which it does
)

// AddToken makes a token of the HTTP API for a client, and returns it: only its hash is stored. Without roles it may publish and subscribe.
// Other processes that have refused it as unknown may do so for another second. It blocks until the server has answered, or ctx ends.
func (b *Bus) AddToken(ctx context.Context, client string, roles ...Role) (string, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	token := client + "--" + hex.EncodeToString(random)
	if err := b.tokens.add(ctx, token, client, roles); err != nil {
		return "", err
	}
	return token, nil
}

// Tokens returns what can be seen of all tokens, by client and time.
func (b *Bus) Tokens(ctx context.Context) ([]Token, error) {
	if err := b.begin(); err != nil {
		return nil, err
	}
	stored, err := iwebhook.Tokens{Bus: b.calls}.All(ctx)
	var all []Token
	for _, s := range stored {
		t := Token{ID: s.ID(), Client: s.Client, Created: s.Created}
		for _, role := range s.Roles {
			t.Roles = append(t.Roles, Role(role))
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Token) int {
		return cmp.Or(strings.Compare(a.Client, b.Client), a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// RemoveToken removes a token by its ID, or by the token itself. This process refuses it when RemoveToken has returned, others within a second.
// The error is ErrNoToken if there is none. What its client has subscribed to or publishes stays.
func (b *Bus) RemoveToken(ctx context.Context, id string) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.tokens.forget()
	n, err := iwebhook.Tokens{Bus: b.calls}.Remove(ctx, id)
	if err == nil && n == 0 {
		err = ErrNoToken
	}
	return err
}

// tokens are those that a process has looked up a moment ago, also the unknown ones.
type tokens struct {
	b *Bus

	mu      sync.Mutex
	known   map[[sha256.Size]byte]knownToken
	changes int // what was looked up before the last one is not kept
}

type knownToken struct {
	token *iwebhook.Token // nil: there is none
	at    time.Time
}

func newTokens(b *Bus) *tokens { return &tokens{b: b, known: map[[sha256.Size]byte]knownToken{}} }

// find returns what is stored of a token, nil if it is none.
func (t *tokens) find(ctx context.Context, token string) (*iwebhook.Token, error) {
	sum, now := sha256.Sum256([]byte(token)), time.Now()
	t.mu.Lock()
	known, ok := t.known[sum]
	changes := t.changes
	t.mu.Unlock()
	if ok && now.Sub(known.at) < tokenMemory {
		return known.token, nil
	}
	if err := t.b.begin(); err != nil {
		return nil, err
	}
	found, err := iwebhook.Tokens{Bus: t.b.calls}.Find(ctx, token)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes == changes {
		if len(t.known) >= mostKnown {
			clear(t.known)
		}
		t.known[sum] = knownToken{found, now}
	}
	return found, nil
}

// forget forgets all, and what is being looked up.
func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	clear(t.known)
}

// add stores a token: one that AddToken has made, or one of the user's own.
func (t *tokens) add(ctx context.Context, token, client string, roles []Role) error {
	if err := checkClient(client); err != nil {
		return err
	}
	if len(token) < leastToken || len(token) > mostToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c == ':' || c > '~' }) {
		return invalidf("token does not have %d to %d letters, digits and signs but the colon", leastToken, mostToken)
	}
	if token == t.b.opts.RootToken {
		return ErrTokenExists
	}
	stored := iwebhook.Token{Client: client, Created: time.Now().UTC().Truncate(time.Second)}
	if len(roles) == 0 {
		roles = []Role{RolePublish, RoleSubscribe}
	}
	for _, role := range roles {
		if !slices.Contains([]Role{RolePublish, RoleSubscribe, RoleRead}, role) {
			return invalidf("role %.40q is none of publish, subscribe and read", role)
		}
		if !slices.Contains(stored.Roles, string(role)) {
			stored.Roles = append(stored.Roles, string(role))
		}
	}
	if err := t.b.ready(ctx); err != nil {
		return err
	}
	defer t.forget()
	err := iwebhook.Tokens{Bus: t.b.calls}.Add(ctx, token, &stored)
	if errors.Is(err, iwebhook.ErrConflict) {
		err = fmt.Errorf("client %s: %w", client, ErrTokenExists)
	}
	return err
}
