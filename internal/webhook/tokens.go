package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Token is what can be seen of a token of the HTTP API.
type Token struct {
	ID      string    `json:"id"` // see TokenID
	Client  string    `json:"client"`
	Roles   []string  `json:"roles"`
	Created time.Time `json:"created"`
}

// A storedToken is what is stored of a token, under its hash.
type storedToken struct {
	V int `json:"v"`
	Token
}

// ErrNoToken is returned for a token that does not exist.
var ErrNoToken = errors.New("there is no such token")

// HashOf returns under what a token is stored: its SHA-256, in hex.
func HashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenID returns the ID of a token, the beginning of its hash; and an ID as it is, since no token is as short.
func TokenID(text string) string {
	const length = 16
	if len(text) == length {
		return text
	}
	return HashOf(text)[:length]
}

func readToken(hash, text string) (*Token, error) {
	var t storedToken
	return &t.Token, decode("token", fmt.Sprintf("%.16s", hash), text, &t, &t.V)
}

// Tokens are those of a bus.
type Tokens struct{ *Bus }

// Find returns the token with a hash, one without a client if there is none.
func (b Tokens) Find(ctx context.Context, hash string) (Token, error) {
	t, err := find(ctx, b.Bus, "whtoken", hash, readToken)
	return *cmp.Or(t, &Token{}), err
}

// Add stores what can be seen of a token. The error is ErrConflict if there is one of the same text.
func (b Tokens) Add(ctx context.Context, token string, t Token) error {
	t.ID = TokenID(token)
	_, err := b.swap(ctx, []string{b.key("whtoken", 0)}, HashOf(token), "", storedToken{1, t})
	return err
}

// All returns all tokens, by client and time.
func (b Tokens) All(ctx context.Context) (tokens []Token, err error) {
	found, err := all(ctx, b.Bus, "whtoken", readToken)
	for _, t := range found {
		tokens = append(tokens, *t)
	}
	slices.SortFunc(tokens, func(a, b Token) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return tokens, err
}

// Remove removes a token by its ID, or by itself. The error is ErrNoToken if there is none.
func (b Tokens) Remove(ctx context.Context, text string) error {
	hashes, err := b.client.Retrying.HKeys(ctx, b.key("whtoken", 0)).Result()
	at := slices.IndexFunc(hashes, func(hash string) bool { return strings.HasPrefix(hash, TokenID(text)) })
	if err != nil || at < 0 {
		return cmp.Or(err, ErrNoToken)
	}
	return b.client.Retrying.HDel(ctx, b.key("whtoken", 0), hashes[at]).Err()
}
