package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Token is what is stored of a token of the HTTP API: not the token.
type Token struct {
	V       int       `json:"v"`
	Client  string    `json:"client"`
	Roles   []string  `json:"roles"`
	Created time.Time `json:"created"`

	Hash string `json:"-"` // SHA-256 of the token, in hex
}

// ID returns what names the token.
func (t *Token) ID() string { return t.Hash[:16] }

// TokenID returns what names the token of a text that is an ID, or the token itself.
func TokenID(text string) string {
	if _, err := hex.DecodeString(text); err == nil && len(text) == 16 {
		return text
	}
	return hashOf(text)[:16]
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func readToken(hash, text string) (*Token, error) {
	t := &Token{Hash: hash}
	return t, decode("token", hash[:min(len(hash), 16)], text, t, func(t *Token) int { return t.V })
}

// Tokens are those of a bus.
type Tokens struct{ *Bus }

// Find returns what is stored of a token, nil if it is none.
func (b Tokens) Find(ctx context.Context, token string) (*Token, error) {
	text, err := b.client.Retrying.HGet(ctx, b.key("whtoken", 0), hashOf(token)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readToken(hashOf(token), text)
}

// Add stores a token. The error is ErrConflict if there is one of the same text.
func (b Tokens) Add(ctx context.Context, token string, t *Token) error {
	t.V, t.Hash = 1, hashOf(token)
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return b.swap(ctx, []string{b.key("whtoken", 0)}, t.Hash, "", string(text))
}

// All returns what is stored of all tokens.
func (b Tokens) All(ctx context.Context) (all []*Token, err error) {
	texts, err := b.client.Retrying.HGetAll(ctx, b.key("whtoken", 0)).Result()
	for hash, text := range texts {
		t, wrong := readToken(hash, text)
		if wrong != nil || len(hash) < 16 {
			return nil, errors.Join(wrong, err)
		}
		all = append(all, t)
	}
	return all, err
}

// Remove removes tokens by ID, or by the token itself, and returns how many there were.
func (b Tokens) Remove(ctx context.Context, id string) (n int, err error) {
	all, err := b.All(ctx)
	for _, t := range all {
		if err == nil && (t.ID() == id || t.Hash == hashOf(id) || strings.EqualFold(t.Hash, id)) {
			err = b.client.Retrying.HDel(ctx, b.key("whtoken", 0), t.Hash).Err()
			n++
		}
	}
	return n, err
}
