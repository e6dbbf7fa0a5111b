package delayqueue

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Times is Lua for scripts that need the time; see lua/times.lua.
//
//go:embed lua/times.lua
var Times string

//go:embed lua/lib.lua
var lib string

// Lib is Lua for scripts over a queue, Times included; see lua/lib.lua.
var Lib = Times + lib

//go:embed lua/reschedule.lua
var rescheduleSource string

//go:embed lua/remove.lua
var removeSource string

//go:embed lua/list.lua
var listSource string

var (
	rescheduleScript = redis.NewScript(Lib + rescheduleSource)
	removeScript     = redis.NewScript(Lib + removeSource)
	listScript       = redis.NewScript(Lib + listSource)
)

// Keys are the Redis keys of a queue. They must share a slot.
type Keys struct {
	Due      string // sorted set: the IDs of waiting entries, by time
	Versions string // hash by ID
	Data     string // hash by ID
	Sequence string // counter of versions and of IDs
}

// Names returns the keys as scripts that use Lib expect them, in the order of the fields.
func (k Keys) Names() []string { return []string{k.Due, k.Versions, k.Data, k.Sequence} }

// A Queue may be used by any number of processes at once. The zero value is not usable.
type Queue struct {
	rdb  redis.Scripter
	keys Keys
}

// New returns the queue of these keys.
func New(rdb redis.Scripter, keys Keys) Queue { return Queue{rdb: rdb, keys: keys} }

// An Entry is one of a queue.
type Entry struct {
	ID   string
	At   time.Time
	Data string
}

// Millis returns a time for a script: milliseconds since 1970, rounded up, so nothing is early.
func Millis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// Delay returns a duration for a script: '+' and milliseconds, rounded up.
func Delay(d time.Duration) string {
	return "+" + strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

// Reschedule changes when an entry is due: at a time, rounded up to a millisecond, or now if it is
// zero. there is false, and nothing was changed, if the entry does not wait. first reports whether
// the entry became the first of all waiting ones. The call may be repeated.
func (q Queue) Reschedule(ctx context.Context, id string, at time.Time) (there, first bool, err error) {
	due := Delay(0)
	if !at.IsZero() {
		due = strconv.FormatInt(Millis(at), 10)
	}
	reply, err := rescheduleScript.Run(ctx, q.rdb, q.keys.Names(), id, due).Int64Slice()
	if err != nil {
		return false, false, err
	}
	if len(reply) != 2 {
		return false, false, unexpected(reply)
	}
	return reply[0] == 1, reply[1] == 1, nil
}

// Remove removes an entry and reports whether it was waiting; a repetition reports false.
func (q Queue) Remove(ctx context.Context, id string) (waited bool, err error) {
	n, err := removeScript.Run(ctx, q.rdb, q.keys.Names(), id).Int64()
	return n == 1, err
}

// List returns at most n waiting entries in order, beginning with number from. It changes nothing.
func (q Queue) List(ctx context.Context, from, n int) ([]Entry, error) {
	reply, err := listScript.Run(ctx, q.rdb, q.keys.Names(), from, n).Slice()
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(reply))
	for i, one := range reply {
		flat, _ := one.([]any)
		if len(flat) != 3 {
			return nil, unexpected(reply)
		}
		id, isID := flat[0].(string)
		at, isTime := flat[1].(string)
		data, isData := flat[2].(string)
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil || !isID || !isTime || !isData {
			return nil, unexpected(reply)
		}
		out[i] = Entry{ID: id, At: time.UnixMilli(ms), Data: data}
	}
	return out, nil
}

func unexpected(reply any) error { return fmt.Errorf("due queue: unexpected reply %v", reply) }
