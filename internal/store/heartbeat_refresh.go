package store

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// heartbeatCall writes a heartbeat, and reads the membership.
func heartbeatCall(ctx context.Context, p Heartbeat) *redisconn.Call {
	known := ""
	if len(p.Seen) > 0 {
		sum := sha1.Sum(p.Seen)
		known = hex.EncodeToString(sum[:])
	}
	return redisconn.ScriptCall(ctx, beatScript, []string{p.Key, p.Membership}, milliseconds(p.Expiry), p.Info.Encode(), known)
}

// parseRefresh parses the reply of beat.lua, which has no leases.
func parseRefresh(p Heartbeat, reply *redis.Cmd) (out RefreshResult, failed error) {
	parts, err := reply.Slice()
	if err == nil && len(parts) != 2 {
		err = fmt.Errorf("reply of %d values", len(parts))
	}
	if err != nil {
		out.Unread = classify(err)
		return out, fmt.Errorf("heartbeat %s: %w", p.Key, out.Unread)
	}
	out.Now, _ = parts[0].(int64)
	switch members := parts[1].(type) {
	case string:
		if members != "" {
			out.Membership = []byte(members)
		}
	case int64:
		out.Membership = p.Seen
	default: // a bad membership does not affect the leases
		out.Unread = unreadable(p.Membership, classify(refusal(members)))
	}
	return out, nil
}

// refusal returns the error that stands for a value in a script's reply.
func refusal(reply any) error {
	if list, ok := reply.([]any); ok && len(list) == 1 {
		reply = list[0]
	}
	return redisconn.ScriptError(fmt.Sprint(reply))
}

// generationOf returns a generation of the rules, -1 on an error, which does not fail the refresh.
func generationOf(reply *redis.Cmd) int64 {
	n, err := reply.Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return 0
	case err != nil:
		return -1
	}
	return n
}
