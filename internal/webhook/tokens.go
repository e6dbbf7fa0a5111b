package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Token is what is stored of a token of the HTTP API: not the token.
type Token struct {
	V       int       `json:"v"`
	Client  string    `json:"client"`
	Roles   []string  `json:"roles"`
	Created time.Time `json:"created"`

	Hash string `json:"-"` // HashOf the token
}

// ID returns what names the token.
func (t *Token) ID() string { return t.Hash[:16] }

// HashOf returns under what a token is stored: its SHA-256, in hex.
func HashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func readToken(hash, text string) (*Token, error) {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return nil, errors.New("a token is stored under no hash")
	}
	t := &Token{Hash: hash}
	return t, decode("token", t.ID(), text, t, func(t *Token) int { return t.V })
}

// Tokens are those of a bus.
type Tokens struct{ *Bus }

// Find returns the token with a hash, nil if there is none.
func (b Tokens) Find(ctx context.Context, hash string) (*Token, error) {
	text, err := b.client.Retrying.HGet(ctx, b.key("whtoken", 0), hash).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readToken(hash, text)
}

// Add stores a token. The error is ErrConflict if there is one of the same text.
func (b Tokens) Add(ctx context.Context, token string, t *Token) error {
	t.V, t.Hash = 1, HashOf(token)
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return b.swap(ctx, []string{b.key("whtoken", 0)}, t.Hash, "", string(text))
}

// All returns all tokens, by client and time.
func (b Tokens) All(ctx context.Context) (all []*Token, err error) {
	texts, err := b.client.Retrying.HGetAll(ctx, b.key("whtoken", 0)).Result()
	for hash, text := range texts {
		t, err := readToken(hash, text)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Token) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), a.Created.Compare(b.Created), cmp.Compare(a.Hash, b.Hash))
	})
	return all, err
}

// Named returns the token of an ID, or of its own text, nil if there is none.
func (b Tokens) Named(ctx context.Context, id string) (*Token, error) {
	all, err := b.All(ctx)
	at := slices.IndexFunc(all, func(t *Token) bool { return t.ID() == id || t.Hash == HashOf(id) })
	if at < 0 {
		return nil, err
	}
	return all[at], err
}

// Remove removes a token.
func (b Tokens) Remove(ctx context.Context, t *Token) error {
	return b.client.Retrying.HDel(ctx, b.key("whtoken", 0), t.Hash).Err()
}
