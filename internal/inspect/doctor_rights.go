package inspect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// nowhere is a partition that no stream has.
const nowhere = math.MaxInt32

// A probe is a command that does nothing, and needs a right that the framework needs.
type probe struct {
	right string
	args  []any
	lacks string // what does not work without it; "": nothing works
}

// streamProbes are those on a partition.
func streamProbes(log string) []probe {
	return []probe{
		{"XADD", []any{"XADD", log, "NOMKSTREAM", "*", "a", "b"}, ""},
		{"XREADGROUP", []any{"XREADGROUP", "GROUP", "doctor", "doctor", "COUNT", 1, "STREAMS", log, ">"}, ""},
		{"XREAD", []any{"XREAD", "COUNT", 1, "STREAMS", log, "0"}, ""},
		{"XACK", []any{"XACK", log, "doctor", "0-1"}, ""},
		{"XDEL", []any{"XDEL", log, "0-1"}, ""},
		{"XTRIM", []any{"XTRIM", log, "MAXLEN", 0}, ""},
		{"XLEN", []any{"XLEN", log}, ""},
		{"XRANGE", []any{"XRANGE", log, "-", "+", "COUNT", 1}, ""},
		{"XREVRANGE", []any{"XREVRANGE", log, "+", "-", "COUNT", 1}, ""},
		{"XPENDING", []any{"XPENDING", log, "doctor"}, ""},
		{"XINFO STREAM", []any{"XINFO", "STREAM", log}, ""},
		{"XINFO GROUPS", []any{"XINFO", "GROUPS", log}, ""},
		{"XGROUP DESTROY", []any{"XGROUP", "DESTROY", log, "doctor"}, ""},
	}
}

// probes try every command on a key of its kind, and every kind of key.
func (d *doctor) probes() []probe {
	k := d.c.Keys()
	log := k.Partition("doctor", nowhere)
	own := k.Ownership("doctor", "doctor", nowhere)
	lock := k.Lock("doctor", "doctor", nowhere)
	due := k.Delayed("doctor", nowhere)
	all := streamProbes(log)
	all = append(all, []probe{
		{"GET", []any{"GET", lock}, ""},
		{"SET", []any{"SET", lock, "doctor", "XX"}, ""},
		{"PEXPIRE", []any{"PEXPIRE", lock, 1}, ""},
		{"PTTL", []any{"PTTL", lock}, ""},
		{"EXISTS", []any{"EXISTS", lock}, ""},
		{"DEL", []any{"DEL", lock}, ""},
		{"HGET", []any{"HGET", own, "doctor"}, ""},
		{"HMGET", []any{"HMGET", own, "doctor"}, ""},
		{"HDEL", []any{"HDEL", own, "doctor"}, ""},
		{"HLEN", []any{"HLEN", own}, ""},
		{"HKEYS", []any{"HKEYS", own}, ""},
		{"HEXISTS", []any{"HEXISTS", own, "doctor"}, ""},
		{"HVALS", []any{"HVALS", own}, ""},
		{"HGETALL", []any{"HGETALL", own}, ""},
		{"HINCRBY", []any{"HINCRBY", own, "doctor", "no number"}, ""},
		{"ZCARD", []any{"ZCARD", due.Due}, ""},
		{"ZSCORE", []any{"ZSCORE", due.Due, "doctor"}, ""},
		{"ZCOUNT", []any{"ZCOUNT", due.Due, 0, 0}, ""},
		{"ZRANGEBYSCORE", []any{"ZRANGEBYSCORE", due.Due, 0, 0}, ""},
		{"XGROUP CREATE", []any{"XGROUP", "CREATE", log, "doctor", "$"}, ""},
		{"XGROUP SETID", []any{"XGROUP", "SETID", log, "doctor", "$"}, ""},
		{"UNLINK", []any{"UNLINK", log}, ""},
		{"SCAN", []any{"SCAN", 0, "COUNT", 1}, ""},
		{"HSCAN", []any{"HSCAN", own, 0}, ""},
		{"SCRIPT LOAD", []any{"SCRIPT", "LOAD", "return 1"}, ""},
		{"ZADD", []any{"ZADD", due.Due, "XX", 1, "doctor"}, ""},
		{"ZRANGE", []any{"ZRANGE", due.Due, 0, 0}, ""},
		{"ZREM", []any{"ZREM", due.Due, "doctor"}, ""},
		{"TIME", []any{"TIME"}, ""},
		{"EVAL", []any{"EVAL", "return 1", 0}, ""},
		{"EVALSHA", []any{"EVALSHA", strings.Repeat("0", 40), 0}, ""},
		{"INFO", []any{"INFO", "server"}, "the version of the server is not checked"},
		{"CLIENT UNBLOCK", []any{"CLIENT", "UNBLOCK", int64(math.MaxInt64)}, "partitions are handed over later: up to a fifth of a second"},
		{"CLIENT KILL", []any{"CLIENT", "KILL", "ID", int64(math.MaxInt64)}, "a worker whose connection breaks has to join anew"},
		{"CONFIG GET", []any{"CONFIG", "GET", "save"}, "doctor sees less"},
		{"read rules (" + k.Rules() + ")", []any{"HGET", k.Rules(), "generation"}, ""},
	}...)
	for _, key := range []string{
		k.Membership("doctor", "doctor"), k.AdminLock("doctor", "doctor"), k.Beat("doctor", "doctor", "doctor"), k.Control("doctor", "doctor"),
		k.Meta("doctor.0"), k.Streams(), k.Parked("doctor", "doctor", nowhere), k.Retry("doctor", "doctor", nowhere), k.Dead("doctor", "doctor", nowhere),
		k.Once("doctor", nowhere, "doctor"), k.AppControl(), k.Leader(), k.Tasks(), due.Run, due.Versions, due.Data, due.Attempts, due.Sequence,
	} {
		all = append(all, probe{"write keys like " + key, []any{"HDEL", key, "__doctor"}, ""}) // whatever is there stays
	}
	return all
}

// rights tries what the user may do.
func (d *doctor) rights(ctx context.Context) error {
	probes := d.probes()
	pipe := d.c.Redis().Pipeline()
	replies := make([]*redis.Cmd, len(probes))
	for i, p := range probes {
		replies[i] = pipe.Do(ctx, p.args...)
	}
	pipe.Exec(ctx) // every reply carries its error
	var missing, optional []string
	for i, p := range probes {
		err := replies[i].Err()
		if err == nil && p.right == "DEL" {
			if missing, err = d.writes(ctx, missing); err != nil {
				return err
			}
		}
		switch {
		case err == nil || err == redis.Nil:
		case !refused(err):
			return err
		case !denied(err) || slices.Contains(missing, p.right):
		case p.lacks == "":
			missing = append(missing, p.right)
		default:
			optional = append(optional, fmt.Sprintf("%s (without it %s)", p.right, p.lacks))
		}
	}
	const advice = "extend the user's rules with ACL SETUSER, see docs/delivery.md"
	if len(missing) > 0 {
		d.say("rights", LevelProblem, advice, "missing: %s", strings.Join(missing, ", "))
	}
	if len(optional) > 0 {
		d.say("rights", LevelWarning, advice, "missing, and not indispensable: %s", strings.Join(optional, ", "))
	}
	if len(missing)+len(optional) == 0 {
		d.say("rights", LevelOK, "", "all that are needed")
	}
	return nil
}

// writes tries commands that leave something behind, and removes that in the same
// transaction; the user may delete.
func (d *doctor) writes(ctx context.Context, missing []string) ([]string, error) {
	own, sequence := d.c.Keys().Ownership("doctor", "doctor", nowhere), d.c.Keys().Delayed("doctor", nowhere).Sequence
	for _, p := range []probe{
		{"HSET", []any{"HSET", own, "doctor", "1"}, ""},
		{"INCR", []any{"INCR", sequence}, ""},
	} {
		pipe := d.c.Redis().TxPipeline()
		pipe.Do(ctx, p.args...)
		pipe.Del(ctx, own, sequence)
		switch _, err := pipe.Exec(ctx); {
		case err == nil:
		case !refused(err):
			return missing, err
		case denied(err) || strings.HasPrefix(err.Error(), "EXECABORT"):
			missing = append(missing, p.right)
		}
	}
	return missing, nil
}

// denied says that a command is not permitted, or not there.
func denied(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand")
}
