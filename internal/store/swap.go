package store

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// load returns a value, nil if there is none.
func (c *Client) load(ctx context.Context, key string) ([]byte, error) {
	value, err := c.Retrying.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err)
	}
	return value, nil
}

// swap replaces a value if it still equals old; an empty old stands for none. It
// is true as well when the value is the new one already.
func (c *Client) swap(ctx context.Context, key string, old, new []byte) (bool, error) {
	n, err := swapScript.Run(ctx, c.NoRetry, []string{key}, old, new).Int64()
	if err != nil {
		return false, classify(err)
	}
	return n == 1, nil
}
