package keymigrate

import (
	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/store"
)

// A source is the server that has the keys, with the names that they have and those that
// they get.
type source struct {
	client   *store.Client
	rdb      redis.UniversalClient // of client
	from, to keys.Keys
}
