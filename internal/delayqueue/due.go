package delayqueue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lib is Lua for scripts over a queue; see lua/lib.lua.
//
//go:embed lua/lib.lua
var Lib string

//go:embed lua/put.lua
var putSource string

//go:embed lua/take.lua
var takeSource string

//go:embed lua/done.lua
var doneSource string

//go:embed lua/recover.lua
var recoverSource string

//go:embed lua/remove.lua
var removeSource string

//go:embed lua/list.lua
var listSource string

var (
	putScript     = redis.NewScript(Lib + putSource)
	takeScript    = redis.NewScript(Lib + takeSource)
	doneScript    = redis.NewScript(Lib + doneSource)
	recoverScript = redis.NewScript(Lib + recoverSource)
	removeScript  = redis.NewScript(Lib + removeSource)
	listScript    = redis.NewScript(Lib + listSource)
)

// ErrFenced says that the lock of a fenced queue is somebody else's, or nobody's.
// Nothing was changed.
var ErrFenced = errors.New("fenced: the lock of the queue is not ours")

// Keys are the Redis keys of a queue. They must share a slot.
type Keys struct {
	Due      string // sorted set: the IDs of what waits, by time
	Run      string // sorted set: the IDs of what runs, by the time that they had
	Versions string // hash by ID
	Data     string // hash by ID
	Attempts string // hash by ID: how often it was taken since it last succeeded
	Sequence string // counter of versions and of IDs
}

// Names are the keys as scripts that use Lib expect them, in the order of the
// fields.
func (k Keys) Names() []string {
	return []string{k.Due, k.Run, k.Versions, k.Data, k.Attempts, k.Sequence}
}

// A Queue is used by any number of processes at once. The zero value is none.
type Queue struct {
	rdb         redis.Scripter
	keys        Keys
	lock, value string
}

// New returns the queue of these keys. A client that repeats commands by itself
// is only right where a repetition does no harm; see the methods.
func New(rdb redis.Scripter, keys Keys) Queue { return Queue{rdb: rdb, keys: keys} }

// Fenced returns the queue for the holder of a lock: Take, Done and Recover
// change nothing and return ErrFenced unless the key holds the value.
func (q Queue) Fenced(lock, value string) Queue {
	q.lock, q.value = lock, value
	return q
}

// A Mode says what Put does where there is an entry of the ID already.
type Mode string

// What Put does with an entry that is there already.
const (
	Set       Mode = "set" // its time becomes the new one
	Earliest  Mode = "min" // its time becomes the earlier one of both
	IfAbsent  Mode = "nx"  // nothing, also if it runs
	IfPresent Mode = "xx"  // as Set; and nothing where there is none
)

// A Put is what Queue.Put is told.
type Put struct {
	ID    string        // "": the queue gives one of 16 digits, larger than those before
	At    time.Time     // rounded up to a millisecond; zero: After from now
	After time.Duration // by Redis' clock, rounded up to a millisecond
	Mode  Mode          // "": Set
	Data  *string       // nil: it keeps what it has
}

// A Stored is what became of a Put.
type Stored struct {
	ID      string
	Version int64
	First   bool // it became the first of all that wait, earlier than any before
}

// An Entry is one of a queue.
type Entry struct {
	ID       string
	Version  int64
	Attempts int // how often it was taken since it last succeeded
	At       time.Time
	Data     string
}

// Millis is a time for a script: milliseconds since 1970, rounded up, so that
// nothing is early.
func Millis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// Delay is a duration for a script: '+' and milliseconds, rounded up.
func Delay(d time.Duration) string {
	return "+" + strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

func when(at time.Time, after time.Duration) string {
	if at.IsZero() {
		return Delay(after)
	}
	return strconv.FormatInt(Millis(at), 10)
}

// Put puts an entry. false: the mode forbids it, nothing was changed. A
// repetition raises the version once more, and puts a second entry where the
// queue gives the ID.
func (q Queue) Put(ctx context.Context, p Put) (Stored, bool, error) {
	mode, with, data := p.Mode, "", ""
	if mode == "" {
		mode = Set
	}
	if p.Data != nil {
		with, data = "1", *p.Data
	}
	reply, err := putScript.Run(ctx, q.rdb, q.keys.Names(), p.ID, when(p.At, p.After), string(mode), with, data).Slice()
	if err != nil {
		return Stored{}, false, sorted(err)
	}
	id, version, first := "", int64(0), int64(0)
	if err := scan(reply, &id, &version, &first); err != nil {
		return Stored{}, false, err
	}
	return Stored{ID: id, Version: version, First: first == 1}, id != "", nil
}

// Take takes at most n entries that are due, in order; they run until Done or
// Recover. next is how long until another one is due, negative if none waits. A
// repetition takes others: those of a call whose reply was lost run until Recover.
func (q Queue) Take(ctx context.Context, n int) (taken []Entry, next time.Duration, err error) {
	reply, err := takeScript.Run(ctx, q.rdb, q.locked(), q.value, n).Slice()
	if err != nil {
		return nil, 0, sorted(err)
	}
	if len(reply) != 2 {
		return nil, 0, unexpected(reply)
	}
	if taken, err = entries(reply[0]); err != nil {
		return nil, 0, err
	}
	wait, ok := reply[1].(int64)
	if !ok {
		return nil, 0, unexpected(reply)
	}
	return taken, time.Duration(wait) * time.Millisecond, nil
}

// An Outcome is what became of an entry whose run ended.
type Outcome string

// What Done may answer.
const (
	Gone  Outcome = "gone"  // it did not run any more: it was ended, recovered or removed before
	Again Outcome = "again" // it was put again while it ran, and waits
	Later Outcome = "later" // it waits for the time that Done was told
	Done  Outcome = "done"  // it is no more
)

// An End is how the run of an entry ended.
type End struct {
	Failed bool // its attempts go on counting
	Again  bool // it is due again, at At, or if that is zero After from now
	At     time.Time
	After  time.Duration
}

// Done ends the run of an entry. It is removed if it has still the version that
// was taken and is not due again. A repetition answers Gone.
func (q Queue) Done(ctx context.Context, e Entry, end End) (Outcome, error) {
	failed, next := "", ""
	if end.Failed {
		failed = "1"
	}
	if end.Again {
		next = when(end.At, end.After)
	}
	reply, err := doneScript.Run(ctx, q.rdb, q.locked(), q.value, e.ID, strconv.FormatInt(e.Version, 10), failed, next).Text()
	return Outcome(reply), sorted(err)
}

// Recover lets all that runs wait again, due when it was, for whoever takes over
// from one that died. It returns how many. A repetition changes nothing more.
func (q Queue) Recover(ctx context.Context) (int64, error) {
	n, err := recoverScript.Run(ctx, q.rdb, q.locked(), q.value).Int64()
	return n, sorted(err)
}

// Remove removes an entry, also one that runs: then Done will answer Gone. It
// reports whether it waited and whether it ran; of a repetition neither.
func (q Queue) Remove(ctx context.Context, id string) (waited, ran bool, err error) {
	n, err := removeScript.Run(ctx, q.rdb, q.keys.Names(), id).Int64()
	return n == 1, n == 2, sorted(err)
}

// List returns at most n entries that wait, in order, from the one with this
// number on. It changes nothing.
func (q Queue) List(ctx context.Context, from, n int) ([]Entry, error) {
	reply, err := listScript.Run(ctx, q.rdb, q.keys.Names(), from, n).Slice()
	if err != nil {
		return nil, sorted(err)
	}
	return entries(reply)
}

func (q Queue) locked() []string {
	if q.lock == "" {
		return q.keys.Names()
	}
	return append(q.keys.Names(), q.lock)
}

func entries(reply any) ([]Entry, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, unexpected(reply)
	}
	out := make([]Entry, len(list))
	for i, one := range list {
		flat, _ := one.([]any)
		e, at, attempts := &out[i], int64(0), int64(0)
		if err := scan(flat, &e.ID, &e.Version, &attempts, &at, &e.Data); err != nil {
			return nil, err
		}
		e.Attempts, e.At = int(attempts), time.UnixMilli(at)
	}
	return out, nil
}

// scan reads a reply into pointers to string and int64; numbers may be text.
func scan(reply []any, into ...any) (err error) {
	if len(reply) != len(into) {
		return unexpected(reply)
	}
	for i, v := range reply {
		text, isText := v.(string)
		switch p := into[i].(type) {
		case *string:
			*p = text
		case *int64:
			if *p, isText = v.(int64); !isText {
				*p, err = strconv.ParseInt(text, 10, 64)
				isText = err == nil
			}
		}
		if !isText {
			return unexpected(reply)
		}
	}
	return nil
}

func unexpected(reply any) error { return fmt.Errorf("due queue: unexpected reply %v", reply) }

// sorted gives the error of a script its sentinel.
func sorted(err error) error {
	if err != nil && strings.Contains(err.Error(), "FENCED") {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}
