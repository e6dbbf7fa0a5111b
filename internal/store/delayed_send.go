package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/delayqueue"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// delayedFields bounds the strings of a delayed event: a script unpacks them.
const delayedFields = 4000

// ErrTooWide is returned if a record has too many fields to be delayed.
var ErrTooWide = errors.New("a delayed event has at most 2000 fields")

// Due is when a record becomes an event by Redis' clock: at At or, if that is zero, After from now.
type Due struct {
	At    time.Time
	After time.Duration
}

func (d Due) text() string {
	if d.At.IsZero() {
		return delayqueue.Delay(d.After)
	}
	return strconv.FormatInt(delayqueue.Millis(d.At), 10)
}

// delayCall is the script call for the next n records of a part with due times.
func (p *part) delayCall(ctx context.Context, c *core) *redisconn.Call {
	args := append(make([]any, 0, 2+3*p.n), p.meta.MaxLen, p.meta.dedupWindow())
	first := len(p.Records) - len(p.rest)
	for i, fields := range p.rest[:p.n] {
		once := ""
		if p.id(i) != "" {
			once = "1"
		}
		args = append(args, p.Due[first+i].text(), once, pack(fields))
	}
	return redisconn.ScriptCall(ctx, delayScript, p.keys(c), args...)
}

// delayedAnswer reads the reply to a delayCall of n records.
func delayedAnswer(reply *redis.Cmd, n int) (a answer) {
	// A value counts even beside an error; see sending.split.
	v, err := reply.Result()
	flat, _ := v.([]any)
	if len(flat) != 3 {
		if err == nil {
			err = fmt.Errorf("unexpected reply of %d values", len(flat))
		}
		return answer{err: err}
	}
	a.words = textsOf(flat[0])
	earliest, _ := flat[2].(int64)
	a.earliest = earliest == 1
	switch text, ok := flat[1].(string); {
	case text != "":
		a.err = redisconn.ScriptError(text)
	case !ok || len(a.words) != n:
		a.err = fmt.Errorf("unexpected reply of %d IDs for %d records", len(a.words), n)
	}
	return a
}

// delayKeys returns the keys of scripts that use a partition and its due queue.
func (c *core) delayKeys(stream string, partition int) []string {
	return append([]string{c.keys.Partition(stream, partition)}, c.dueKeys(stream, partition).Names()...)
}

func (c *core) dueKeys(stream string, partition int) delayqueue.Keys {
	return delayqueue.Keys(c.keys.Delayed(stream, partition))
}

var queueID = regexp.MustCompile(`^[0-9]{16}$`)

// DelayedID names a delayed event: its partition, and its ID in the due queue.
func DelayedID(partition int, id string) string { return strconv.Itoa(partition) + "/" + id }

// ParseDelayedID is the inverse of DelayedID.
func ParseDelayedID(s string) (partition int, id string, ok bool) {
	number, id, _ := strings.Cut(s, "/")
	partition, err := strconv.Atoi(number)
	return partition, id, err == nil && partition >= 0 && queueID.MatchString(id)
}
