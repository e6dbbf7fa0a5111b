package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/runnel-go/runnel/internal/groupcommit"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/rebalance"
)

var (
	// ErrHeld says that someone else holds the lock.
	ErrHeld = rebalance.ErrHeld
	// ErrFenced says that the ownership a command was sent under is over: the
	// lock has another value, or the consumer group is gone.
	ErrFenced = errors.New("fenced: this ownership is over")
	// ErrWrongType says that a key of the framework holds another Redis type.
	ErrWrongType = errors.New("key holds a wrong Redis type")
	// ErrGarbled says that an ownership hash holds what no owner stores there.
	ErrGarbled = errors.New("it holds what no owner stores")
	// ErrNoGroup says that a read named a partition without the group, without
	// the key, or with a key of another type. Nothing was consumed.
	ErrNoGroup = errors.New("consumer group is gone")
	// ErrUnknownOutcome says that a request was sent and its reply lost.
	ErrUnknownOutcome = errors.New("unknown outcome")
	// ErrFull says that there is no room for more, and that nothing was changed.
	ErrFull = errors.New("no room")
	// ErrCannotKill says that the server does not let us end a connection.
	ErrCannotKill = errors.New("CLIENT KILL is not permitted")
)

// isReply reports whether err is the server's answer, so that the command was
// refused and not executed.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Denied reports whether err says that the server does not permit a command, or the use
// of a key, to its user.
func Denied(err error) bool { return replyHas(err, "NOPERM", "The user executing the script") }

// replyHas reports whether err is an error reply that contains one of the codes.
// A script's errors carry the code inside their text on some servers.
func replyHas(err error, codes ...string) bool {
	if !isReply(err) {
		return false
	}
	for _, code := range codes {
		if strings.Contains(err.Error(), code) {
			return true
		}
	}
	return false
}

// Unavailable reports whether err says that the server is out of reach or not
// ready, so that the same may work in a while.
func Unavailable(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, ErrUnknownOutcome) || notSent(err) ||
		replyHas(err, "LOADING ", "MASTERDOWN ", "TRYAGAIN ", "BUSY ", "CLUSTERDOWN ")
}

// marked wraps err so that errors.Is finds the sentinel too.
func marked(sentinel, err error) error { return fmt.Errorf("%w: %w", sentinel, err) }

// aside is an error of a question of our own, for whoever wanted something else: a reply
// to us, or the end of our patience, is neither a reply to that nor the end of its.
func aside(err error) error {
	if isReply(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}

// sorted gives an error of a command that names one partition its sentinel.
func sorted(err error) error {
	switch {
	case err == nil:
		return nil
	case replyHas(err, "FENCED", "NOGROUP"):
		return marked(ErrFenced, err)
	case replyHas(err, "FULL "):
		return marked(ErrFull, err)
	case replyHas(err, "WRONGTYPE"):
		return marked(ErrWrongType, err)
	case replyHas(err, "MOVED "):
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, and wants a URL of the form redis+cluster://host:port", err)
	case isReply(err), notSent(err), errors.As(err, new(*groupcommit.UnsentError)), errors.Is(err, ErrNotReplicated):
		return err
	}
	return marked(ErrUnknownOutcome, err)
}
