package store

import (
	"errors"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

var (
	// ErrHeld is returned if another owner holds the lock.
	ErrHeld = rebalance.ErrHeld
	// ErrFenced is returned if the ownership a command was sent under is over: the lock
	// has another value, or the consumer group is gone.
	ErrFenced = errors.New("fenced: this ownership is over")
	// ErrGarbled is returned if an ownership hash holds values that no owner stores.
	ErrGarbled = errors.New("invalid ownership")
	// ErrFull is returned if there is no room for more; then nothing was changed.
	ErrFull = errors.New("no room")
)

// classify maps the error of a command for one partition to its sentinel.
func classify(err error) error {
	switch {
	case redisconn.ReplyHas(err, "FENCED", "NOGROUP"):
		return redisconn.WithSentinel(ErrFenced, err)
	case redisconn.ReplyHas(err, "FULL "):
		return redisconn.WithSentinel(ErrFull, err)
	}
	return redisconn.Classify(err)
}
