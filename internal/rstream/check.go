package rstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// CanUnblock reports whether the server ends a blocked read on our word. It is
// true until the server was seen to refuse it.
func (c *Client) CanUnblock() bool { return !c.cannotUnblock.Load() }

// CanKill reports whether the server ends a connection on our word. It is true
// until the server was seen to refuse it.
func (c *Client) CanKill() bool { return !c.cannotKill.Load() }

// Check looks once whether the server can do what the framework needs: it is
// reachable, lets us in, is Redis 7.0 or newer, and has streams and scripts. It
// also finds out whether CLIENT UNBLOCK and CLIENT KILL may be used.
func (c *Client) Check(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return fmt.Errorf("redis at %s: %w", c.addr, err)
	}
	return nil
}

func (c *Client) check(ctx context.Context) error {
	if err := c.once.Ping(ctx).Err(); err != nil {
		return reachError(err)
	}
	if err := c.checkVersion(ctx); err != nil {
		return err
	}
	const nobody = math.MaxInt64 // the ID of no connection
	calls := []*call{
		plainCall(ctx, "XPENDING", c.keys.Partition("check", 0), "check"),
		plainCall(ctx, "EVAL", "return 1", 0),
		plainCall(ctx, "CLIENT", "UNBLOCK", nobody),
		plainCall(ctx, "CLIENT", "KILL", "ID", nobody),
	}
	pipeline(ctx, c.ordinary, calls)
	if err := calls[0].reply.Err(); err != nil && !replyHas(err, "NOGROUP", "WRONGTYPE") {
		return fmt.Errorf("streams are not available: %w", err)
	}
	if err := calls[1].reply.Err(); err != nil {
		return fmt.Errorf("scripts are not available: %w", err)
	}
	c.cannotUnblock.Store(isReply(calls[2].reply.Err()))
	c.cannotKill.Store(isReply(calls[3].reply.Err()))
	return nil
}

func reachError(err error) error {
	switch {
	case replyHas(err, "NOAUTH"):
		return errors.New("it wants a password, and none was given")
	case replyHas(err, "WRONGPASS", "invalid password", "invalid username-password"):
		return errors.New("wrong user name or password")
	}
	return err
}

// checkVersion refuses a server that says it is too old. One that does not let
// us ask, or the embedded one, which has no version, passes.
func (c *Client) checkVersion(ctx context.Context) error {
	info, err := c.ordinary.Info(ctx, "server").Result()
	if isReply(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(info) {
		version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:")
		if !ok {
			continue
		}
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < 7 {
			return fmt.Errorf("it is Redis %s, and 7.0 or newer is needed", version)
		}
	}
	return nil
}
