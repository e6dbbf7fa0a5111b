package redisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/keys"
)

// A WrongTypeError names the keys that hold a wrong type, which Redis' error does not.
type WrongTypeError struct {
	keys []string
	err  error
}

// Error names the keys, and says what to do.
func (e *WrongTypeError) Error() string {
	return fmt.Sprintf("%s: %v: look what it is, then delete or rename it; %s", strings.Join(e.keys, ", "), e.err, help.UnreadableKey)
}

// Unwrap returns the error of Redis.
func (e *WrongTypeError) Unwrap() error { return e.err }

// NameWrongTypes names those of the keys of a failed call that hold a wrong type. Any other error
// stays as it is, and so does one whose key is not found.
func (c *Conn) NameWrongTypes(ctx context.Context, names []string, err error) error {
	if !ReplyHas(err, "WRONGTYPE") || errors.As(err, new(*WrongTypeError)) {
		return err
	}
	var suspects []string
	var calls []*Call
	for _, key := range names {
		if probe := keys.Probe(key); probe != "" && !slices.Contains(suspects, key) {
			suspects, calls = append(suspects, key), append(calls, PlainCall(ctx, probe, key))
		}
	}
	if len(names) > 1 { // a single key is the cause
		Pipeline(ctx, c.Retrying, calls)
	}
	var wrong []string
	for n, key := range suspects {
		if len(names) == 1 || ReplyHas(calls[n].Reply.Err(), "WRONGTYPE") {
			wrong = append(wrong, key)
		}
	}
	if len(wrong) == 0 {
		return err
	}
	return &WrongTypeError{wrong, err}
}

// naming is a hook that names the keys in WRONGTYPE errors. Its own probes pass through it as well, with
// one key each.
type naming struct{ c *Conn }

func (naming) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n naming) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if ReplyHas(err, "WRONGTYPE") {
			err = n.c.NameWrongTypes(ctx, keysOf(cmd.Args()), err)
			cmd.SetErr(err)
		}
		return err
	}
}

func (n naming) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil {
			return nil
		}
		for _, cmd := range cmds {
			if err := cmd.Err(); ReplyHas(err, "WRONGTYPE") {
				cmd.SetErr(n.c.NameWrongTypes(ctx, keysOf(cmd.Args()), err))
			}
		}
		return err
	}
}

// keysOf returns all keys of a script call, or the first key of any other command.
func keysOf(args []any) (keys []string) {
	key, ok := keyOf(args)
	if !ok {
		return nil
	}
	if !strings.HasPrefix(upper(args, 0), "EVAL") {
		return []string{key}
	}
	n, _ := strconv.Atoi(fmt.Sprint(args[2]))
	for i := range min(n, len(args)-3) {
		keys = append(keys, textOf(args, 3+i))
	}
	return keys
}
