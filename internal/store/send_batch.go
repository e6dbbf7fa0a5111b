package store

import (
	"context"
	"errors"
	"strings"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Producer appends events to partitions, at once or when they are due. The app and the
// command line use it to send.
type Producer struct{ *core }

// An Append is what goes to one partition, in order.
type Append struct {
	Stream    string // its metadata says how long the partition may be; "": any length
	Partition int
	Log       string     // the partition's key
	Records   [][]string // each: field, value, field, value, …

	// IDs are, unless nil, the ID of each record, "" for none: what was appended
	// under it within the stream's DedupWindow is not appended again.
	IDs []string
	// Self means that the caller processes this stream: it must not wait for room.
	Self bool
}

// Add adds a record with an ID, "" for none.
func (a *Append) Add(fields []string, id string) {
	if id != "" && a.IDs == nil {
		a.IDs = make([]string, len(a.Records))
	}
	a.Records = append(a.Records, fields)
	if a.IDs != nil {
		a.IDs = append(a.IDs, id)
	}
}

// Appended is what became of an Append: the first len(IDs) records are in. Err is
// the error of the next one; the later ones were not tried. With Unknown that one
// and those behind it may be in or not, all or a part of them.
type Appended struct {
	IDs       []string
	Duplicate []bool // by index, nil where none is: it was in before, as IDs says
	Weak      int    // so many of the IDs, the last ones, are not replicated: Err is ErrNotReplicated then, and of these
	Err       error
	Unknown   bool
}

// Append appends the records of several partitions, in as few round trips as
// their size allows. What fails in one partition does not stop the others.
// Where replicas did not confirm in time what was appended, what is behind it is not
// tried. It never repeats what may have been executed. No partition may be named twice
// in one call: what follows a failure would be appended.
//
// Small calls that come at the same time share a round trip; see groupcommit. What as
// holds may be read even later where ctx ended. If it ends before anything was
// sent, the error is that of ctx, and nothing is unknown.
//
// One request takes at most 1 000 records, 4 MiB, and the stream's Size of a
// partition. If these do not fit, none of them is appended; then the overflow
// policy of the stream decides: the error is a *FullError, or Append waits for
// room until ctx ends, or the oldest entries are dropped.
func (c Producer) Append(ctx context.Context, as []Append) []Appended {
	out, parts := make([]Appended, len(as)), make([]part, len(as))
	open := make([]*part, 0, len(as))
	for i := range as {
		p := &parts[i]
		*p = part{Append: &as[i], out: &out[i], rest: as[i].Records}
		p.out.IDs = make([]string, 0, len(p.rest))
		if len(p.rest) == 0 {
			continue
		}
		if p.meta, p.out.Err = MetaStore(c).recentMeta(ctx, p.Stream); p.out.Err == nil {
			open = append(open, p)
		}
	}
	var full []*part
	for len(open)+len(full) > 0 {
		if len(open) == 0 {
			open, full = c.makeRoom(ctx, full)
			continue
		}
		var denied []*part
		open, denied = c.appendRound(ctx, open)
		full = append(full, denied...)
	}
	return out
}

func (c Producer) newBatch() *groupcommit.Group[*part, answer] {
	return &groupcommit.Group[*part, answer]{
		Send: c.send, Unsent: func(err error) answer { return answer{err: err} },
		Weigh: loadOf, Limit: groupcommit.Load{Items: recordsPerCall, Bytes: bytesPerCall},
	}
}

// sendBatched sends the next records of parts, alone or with those of others.
func (c Producer) sendBatched(ctx context.Context, parts []*part) ([]answer, error) {
	return c.batches.Do(ctx, c.Conn, parts, func(p *part) string { return p.Log })
}

// A part is an Append on its way.
type part struct {
	*Append
	out  *Appended
	meta Meta
	rest [][]string // what is not in yet
	n    int        // so many of them are under way
	need int        // so many of these need room: a duplicate needs none
	wide bool       // that is one, with more fields than Lua's stack holds

	tries int // that found room and came too late, since something was appended
	wait  pacer
	full  *FullError // why it waited last
}

// appendRound sends one batch of each partition that has records left, bounded in
// all. It returns the partitions that have more to send, and those that are full.
func (c Producer) appendRound(ctx context.Context, open []*part) (more, full []*part) {
	var now []*part
	budget := bytesPerCall
	for _, p := range open {
		n, size := batchOf(p.rest, p.meta.MaxLen)
		if len(now) > 0 && size > budget {
			break
		}
		budget -= size
		p.n, p.wide = n, len(p.rest[0]) > fieldsPerCall
		now = append(now, p)
	}
	answers, broken := c.sendBatched(ctx, now)
	more = append(more, open[len(now):]...)
	for i, p := range now {
		err := broken
		if err == nil {
			err = p.take(answers[i])
		}
		if err == nil && p.wide {
			err = c.appendOversized(ctx, p)
		}
		switch {
		case errors.Is(err, errFull):
			full = append(full, p)
		case err != nil:
			p.fail(c.NameWrongTypes(ctx, p.keys(c.core), err))
		case len(p.rest) > 0:
			more = append(more, p)
		}
	}
	return more, full
}

// What is at most this much is gathered with what others send. More is sent on its
// own, and at once: it has little to gain, and would hold the others up.
const (
	gatheredRecords = 100
	gatheredBytes   = 64 << 10
	textWeight      = 16 // bytes that each text counts for beside its own: Redis takes only so many at once
)

// loadOf is how much the next records of parts are.
func loadOf(parts []*part) (l groupcommit.Load, alone bool) {
	for _, p := range parts {
		if l.Items += p.n; p.wide || l.Items > gatheredRecords {
			return l, true
		}
		for _, r := range p.rest[:p.n] {
			l.Bytes += textWeight * len(r)
			for _, s := range r {
				l.Bytes += len(s)
			}
		}
	}
	return l, l.Bytes > gatheredBytes
}

// add notes that the next records are in.
func (p *part) add(ids []string) {
	for _, id := range ids {
		p.out.add(id, p.Partition, len(p.Records))
	}
	p.rest = p.rest[len(ids):]
	p.tries, p.wait = 0, pacer{}
}

// add notes that the next of n records is in. What was sent before under its ID
// may be a delayed event.
func (a *Appended) add(id string, partition, n int) {
	first, duplicate := strings.CutPrefix(id, "=")
	if duplicate && a.Duplicate == nil {
		a.Duplicate = make([]bool, n)
	}
	if duplicate {
		a.Duplicate[len(a.IDs)] = true
	}
	a.IDs = append(a.IDs, sentID(partition, first))
}

// weaken notes that the last n records may get lost, if there is an error that says so,
// and returns it.
func (a *Appended) weaken(err error, n int) error {
	if err != nil {
		a.Weak = n
	}
	return err
}

func (p *part) fail(err error) {
	p.out.Err = classify(err)
	p.out.Unknown = errors.Is(p.out.Err, redisconn.ErrUnknownOutcome)
}
