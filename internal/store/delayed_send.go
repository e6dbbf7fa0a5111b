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

// A Delay is what goes to one partition once it is due, in order.
type Delay struct {
	Stream    string // its metadata says how long the partition may be
	Partition int
	Records   []DelayedRecord
}

// A DelayedRecord is one record of a Delay.
type DelayedRecord struct {
	Fields []string      // field, value, field, value, …
	At     time.Time     // when it is due; zero: After from now
	After  time.Duration // by Redis' clock
	ID     string        // "" for none: what was sent under it within the stream's DedupWindow is not sent again
}

func (r DelayedRecord) due() string {
	if r.At.IsZero() {
		return delayqueue.Delay(r.After)
	}
	return strconv.FormatInt(delayqueue.Millis(r.At), 10)
}

// Delay puts the records of several partitions into their due queues, in as few
// round trips as their size allows. Its IDs are DelayedIDs. A record that is due
// already is appended at once, and has the ID of its entry, unless others that are
// due wait before it or the partition is full: delayed events do not count for the
// length that a partition may have, and wait until there is room. As for Append,
// what fails in one partition does not stop the others, nothing is repeated, and
// no partition may be named twice.
func (c Producer) Delay(ctx context.Context, ds []Delay) []Appended {
	out, parts := make([]Appended, len(ds)), make([]delayPart, len(ds))
	var open []*delayPart
	for i := range ds {
		p := &parts[i]
		*p = delayPart{Delay: &ds[i], out: &out[i], rest: ds[i].Records}
		if len(p.rest) == 0 {
			continue
		}
		if p.meta, p.out.Err = MetaStore(c).recentMeta(ctx, p.Stream); p.out.Err == nil {
			open = append(open, p)
		}
	}
	for len(open) > 0 {
		open = c.delayRound(ctx, open)
	}
	return out
}

// A delayPart is a Delay on its way.
type delayPart struct {
	*Delay
	out    *Appended
	meta   Meta
	rest   []DelayedRecord // what is not in yet
	packed []string        // the first of these, under way
}

// delayRound sends one batch of each partition, bounded in all, and returns the
// partitions that have more to send.
func (c Producer) delayRound(ctx context.Context, open []*delayPart) (more []*delayPart) {
	var calls []*redisconn.Call
	var parts []*delayPart
	var earlier []StreamPartition
	budget := bytesPerCall
	for i, p := range open {
		size, err := p.pack()
		if err != nil {
			p.out.Err = err
			continue
		}
		if len(calls) > 0 && size > budget {
			more = append(more, open[i:]...)
			break
		}
		budget -= size
		calls, parts = append(calls, p.call(ctx, c.core)), append(parts, p)
	}
	weak := c.Durably(ctx, calls)
	for i, p := range parts {
		n := len(p.out.IDs)
		first, err := p.take(calls[i].Reply)
		if n = len(p.out.IDs) - n; err == nil && n > 0 {
			err = p.out.weaken(weak, n)
		}
		if first {
			earlier = append(earlier, StreamPartition{p.Stream, p.Partition})
		}
		switch {
		case err != nil:
			p.fail(c.NameWrongTypes(ctx, p.keys(c.core), err))
		case len(p.rest) > 0:
			more = append(more, p)
		}
	}
	Control(c).announceDue(ctx, earlier...)
	return more
}

// pack packs as many of the records as go in one call.
func (p *delayPart) pack() (size int, err error) {
	p.packed = p.packed[:0]
	for _, r := range p.rest {
		if len(r.Fields) > delayedFields {
			if len(p.packed) == 0 {
				return 0, ErrTooWide
			}
			break
		}
		one := pack(r.Fields)
		if len(p.packed) > 0 && (len(p.packed) == recordsPerCall || size+len(one) > bytesPerCall) {
			break
		}
		p.packed, size = append(p.packed, one), size+len(one)
	}
	return size, nil
}

func (p *delayPart) call(ctx context.Context, c *core) *redisconn.Call {
	args := make([]any, 2, 2+3*len(p.packed))
	args[0], args[1] = p.meta.MaxLen, p.meta.dedupWindow()
	for n, packed := range p.packed {
		once := ""
		if p.rest[n].ID != "" {
			once = "1"
		}
		args = append(args, p.rest[n].due(), once, packed)
	}
	return redisconn.ScriptCall(ctx, delayScript, p.keys(c), args...)
}

// keys are those of a call for the records under way, or for what is left of them.
func (p *delayPart) keys(c *core) []string {
	keys := c.delayKeys(p.Stream, p.Partition)
	for _, r := range p.rest[:min(len(p.packed), len(p.rest))] {
		if r.ID != "" {
			keys = append(keys, c.keys.Once(p.Stream, p.Partition, r.ID))
		}
	}
	return keys
}

// take adds the reply of a call to what became of the partition. It reports
// whether an event is due earlier than any before. Its error is that of the next
// record.
func (p *delayPart) take(reply *redis.Cmd) (first bool, err error) {
	// A value counts also beside an error, see sending.split.
	v, err := reply.Result()
	flat, _ := v.([]any)
	if len(flat) != 3 {
		if err == nil {
			err = fmt.Errorf("unexpected reply of %d values", len(flat))
		}
		return false, err
	}
	err = nil
	earliest, _ := flat[2].(int64)
	ids := textsOf(flat[0])
	text, ok := flat[1].(string)
	for _, id := range ids {
		p.out.add(id, p.Partition, len(p.Records))
	}
	p.rest = p.rest[len(ids):]
	switch {
	case text != "":
		err = redisconn.ScriptError(text)
	case !ok || len(ids) != len(p.packed):
		err = fmt.Errorf("unexpected reply of %d IDs for %d records", len(ids), len(p.packed))
	}
	return earliest == 1, err
}

func (p *delayPart) fail(err error) {
	p.out.Err = classify(err)
	p.out.Unknown = errors.Is(p.out.Err, redisconn.ErrUnknownOutcome)
}

// delayKeys are the keys of scripts that use a partition and its due queue.
func (c *core) delayKeys(stream string, partition int) []string {
	return append([]string{c.keys.Partition(stream, partition)}, c.dueKeys(stream, partition).Names()...)
}

func (c *core) dueKeys(stream string, partition int) delayqueue.Keys {
	return delayqueue.Keys(c.keys.Delayed(stream, partition))
}

var queueID = regexp.MustCompile(`^[0-9]{16}$`)

// sentID is an ID as its sender sees it: of an entry as it is, of a delayed event
// with its partition.
func sentID(partition int, id string) string {
	if strings.Contains(id, "-") {
		return id
	}
	return DelayedID(partition, id)
}

// DelayedID names a delayed event: its partition, and its ID in the due queue.
func DelayedID(partition int, id string) string { return strconv.Itoa(partition) + "/" + id }

// ParseDelayedID is the inverse of DelayedID.
func ParseDelayedID(s string) (partition int, id string, ok bool) {
	number, id, _ := strings.Cut(s, "/")
	partition, err := strconv.Atoi(number)
	return partition, id, err == nil && partition >= 0 && queueID.MatchString(id)
}
