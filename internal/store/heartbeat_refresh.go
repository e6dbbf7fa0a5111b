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

// parseRefresh reads the reply of beat.lua: what is not about a lock.
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
	default: // what the membership holds is no matter of the leases
		out.Unread = unreadable(p.Membership, classify(refusal(members)))
	}
	return out, nil
}

// refusal is the error that stands in the place of something in a script's reply.
func refusal(reply any) error {
	if list, ok := reply.([]any); ok && len(list) == 1 {
		reply = list[0]
	}
	return redisconn.ScriptError(fmt.Sprint(reply))
}

// generationOf reads a generation of the rules, which leases do not depend on:
// an error is none of a refresh.
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
