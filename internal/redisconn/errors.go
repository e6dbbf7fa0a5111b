package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/groupcommit"
)

var (
	// ErrWrongType is returned if a key of the framework holds another Redis type.
	ErrWrongType = errors.New("key holds a wrong Redis type")
	// ErrNoGroup is returned if a read named a partition without the group, without the
	// key, or with a key of another type. Nothing was consumed.
	ErrNoGroup = errors.New("consumer group is gone")
	// ErrUnknownOutcome is returned if a request was sent and its reply was lost.
	ErrUnknownOutcome = errors.New("unknown outcome")
	// ErrCannotKill is returned if the server does not permit ending a connection.
	ErrCannotKill = errors.New("CLIENT KILL is not permitted")
)

// IsReply reports whether err is the server's answer, so that the command was
// refused and not executed.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Denied reports whether err means that the server does not permit a command, or the use
// of a key, to its user. Scripts are told so in words, by newer servers in others.
func Denied(err error) bool {
	return ReplyHas(err, "NOPERM", "The user executing the script", "ACL failure in script")
}

// ReplyHas reports whether err is an error reply that contains one of the codes.
// A script's errors carry the code inside their text on some servers.
func ReplyHas(err error, codes ...string) bool {
	return IsReply(err) && slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(err.Error(), code) })
}

// Unavailable reports whether err means that the server is out of reach or not ready, so
// that a later try may succeed.
func Unavailable(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, ErrUnknownOutcome) || notSent(err) ||
		ReplyHas(err, "LOADING ", "MASTERDOWN ", "TRYAGAIN ", "BUSY ", "CLUSTERDOWN ")
}

// WithSentinel wraps err so that errors.Is finds the sentinel too.
func WithSentinel(sentinel, err error) error { return fmt.Errorf("%w: %w", sentinel, err) }

// detach cuts err's chain, so that a reply to an internal lookup, or its timeout, is not
// taken for one to the caller's command.
func detach(err error) error {
	if IsReply(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}

// Classify adds the sentinel to an error of a command: an error that is neither a reply
// nor of an unsent command is ErrUnknownOutcome.
func Classify(err error) error {
	switch {
	case err == nil:
		return nil
	case ReplyHas(err, "WRONGTYPE"):
		return WithSentinel(ErrWrongType, err)
	case ReplyHas(err, "MOVED "):
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, and wants a URL of the form redis+cluster://host:port", err)
	case IsReply(err), notSent(err), errors.As(err, new(*groupcommit.UnsentError)), errors.Is(err, ErrNotReplicated):
		return err
	}
	return WithSentinel(ErrUnknownOutcome, err)
}

var _ redis.Error = ScriptError("")

// A ScriptError is an error reply that a script caught and handed on as text.
type ScriptError string

// Error returns the text.
func (e ScriptError) Error() string { return string(e) }

// RedisError makes it a reply, as redis.Error wants.
func (e ScriptError) RedisError() {}
