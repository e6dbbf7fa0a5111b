package store

import (
	"errors"

	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/rebalance"
)

var (
	// ErrHeld says that someone else holds the lock.
	ErrHeld = rebalance.ErrHeld
	// ErrFenced says that the ownership a command was sent under is over: the
	// lock has another value, or the consumer group is gone.
	ErrFenced = errors.New("fenced: this ownership is over")
	// ErrGarbled says that an ownership hash holds what no owner stores there.
	ErrGarbled = errors.New("invalid ownership")
	// ErrFull says that there is no room for more, and that nothing was changed.
	ErrFull = errors.New("no room")
)

// classify gives an error of a command that names one partition its sentinel.
func classify(err error) error {
	switch {
	case redisconn.ReplyHas(err, "FENCED", "NOGROUP"):
		return redisconn.WithSentinel(ErrFenced, err)
	case redisconn.ReplyHas(err, "FULL "):
		return redisconn.WithSentinel(ErrFull, err)
	}
	return redisconn.Classify(err)
}
