package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A core is what the parts of a Client share. Each part is a struct of nothing else, so that one
// that needs another converts itself, as in MetaStore(c).
type core struct {
	*redisconn.Conn
	keys    keys.Keys
	metas   metaCache
	batches redisconn.PerNode[*part, answer] // of all producers

	extensions   sync.Map             // whose keys the app has, by name
	transactions atomic.Pointer[bool] // whether the server permits them, nil until that is known
}

// load returns a value, nil if there is none.
func (c *core) load(ctx context.Context, key string) ([]byte, error) {
	value, err := c.Retrying.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err)
	}
	return value, nil
}

// swap replaces a value that equals old, empty for none; true also if it is the new one already.
func (c *core) swap(ctx context.Context, key string, old, new []byte) (bool, error) {
	n, err := swapScript.Run(ctx, c.NoRetry, []string{key}, old, new).Int64()
	if err != nil {
		return false, classify(err)
	}
	return n == 1, nil
}

// persist calls fn, which may be repeated, a few times while its outcome is unknown.
func persist(ctx context.Context, fn func() error) error {
	const tries = 3
	for try := 1; ; try++ {
		err := fn()
		if !errors.Is(err, redisconn.ErrUnknownOutcome) || try == tries || !monotime.Sleep(ctx, time.Duration(try)*20*time.Millisecond) {
			return err
		}
	}
}

// persistScript runs a script that may be repeated, as persist does.
func (c *core) persistScript(ctx context.Context, s *redis.Script, keys []string, args ...any) error {
	return persist(ctx, func() error { return classify(s.Run(ctx, c.NoRetry, keys, args...).Err()) })
}

func milliseconds(d time.Duration) int64 { return max(1, d.Milliseconds()) }
