package store

import (
	"context"
	"errors"
	"strings"

	"github.com/runnel-go/runnel/internal/groupcommit"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// A Producer appends events to partitions, at once or when they are due. The app and cli use it.
type Producer struct{ *core }

// An Append is what goes to one partition, in order.
type Append struct {
	Stream    string // its metadata says how long the partition may be; "": any length
	Partition int
	Log       string     // the partition's key; "": that of Stream and Partition
	Records   [][]string // each: field, value, field, value, …

	// Due, unless nil, is when each record becomes an event. Until then it is in the due queue.
	Due []Due
	// IDs, unless nil, are the IDs of the records, "" for none. A record whose ID was sent within
	// the stream's DedupWindow is not sent again.
	IDs []string
	// Self means that the caller processes this stream, and so must not wait for room.
	Self bool
	// Kind is that of the stream: only who knows it may append there.
	Kind string
}

// Add adds a record with an ID, or "". due is nil for all records of an Append, or for none.
func (a *Append) Add(fields []string, id string, due *Due) {
	if id != "" && a.IDs == nil {
		a.IDs = make([]string, len(a.Records), cap(a.Records))
	}
	if a.IDs != nil {
		a.IDs = append(a.IDs, id)
	}
	if due != nil {
		a.Due = append(a.Due, *due)
	}
	a.Records = append(a.Records, fields)
}

// Appended is the result of an Append: the first len(IDs) records are in. Err is the error of the
// next one; later ones were not tried. With Unknown, any of these records may be in.
type Appended struct {
	IDs       []string // of an entry, or a DelayedID
	Duplicate []bool   // by index, nil if none is: it was in before, as IDs says
	Weak      int      // the last so many of IDs are not replicated: Err is then ErrNotReplicated, and of these
	Err       error
	Unknown   bool
}

// Append appends the records of several partitions, in as few round trips as their size allows;
// those with a due time follow the others. A failure in one partition does not stop the others.
// Nothing is tried behind records that replicas did not confirm in time. Append never repeats what
// may have been executed. A call may name a partition once with due times and once without, and no
// more often: what follows a failure would be appended.
//
// Small calls at the same time share a round trip; see groupcommit. What as holds may then be read
// even after ctx ended. If ctx ends before anything was sent, the error is that of ctx, and nothing
// is unknown.
//
// One request takes at most 1 000 records, 4 MiB, and the stream's MaxLen of a partition. If these
// do not fit, none of them is appended, and the stream's overflow policy decides: the error is a
// *FullError, Append waits for room until ctx ends, or the oldest entries are dropped.
//
// Delayed records do not count for MaxLen. One that is due already is appended at once, and has the
// ID of its entry, unless others that are due wait before it or the partition is full.
func (c Producer) Append(ctx context.Context, as []Append) []Appended {
	out, parts := make([]Appended, len(as)), make([]part, len(as))
	now, later := make([]*part, 0, len(as)), []*part(nil)
	for i := range as {
		p := &parts[i]
		*p = part{Append: &as[i], out: &out[i], log: as[i].Log, rest: as[i].Records}
		p.out.IDs = make([]string, 0, len(p.rest))
		if len(p.rest) == 0 {
			continue
		}
		if p.log == "" {
			p.log = c.keys.Partition(p.Stream, p.Partition)
		}
		switch p.meta, p.out.Err = MetaStore(c).recentMeta(ctx, p.Stream); {
		case p.out.Err != nil:
		case p.meta.Kind != p.Kind:
			p.out.Err = p.meta.checkAppend(p.Stream, p.Kind)
		case p.Due == nil:
			now = append(now, p)
		default:
			later = append(later, p)
		}
	}
	for _, open := range [][]*part{now, later} {
		var full []*part
		for len(open)+len(full) > 0 {
			if len(open) == 0 {
				open, full = c.makeRoom(ctx, full)
				continue
			}
			more, denied := c.appendRound(ctx, open)
			open, full = more, append(full, denied...)
		}
	}
	return out
}

func (c Producer) newBatch() *groupcommit.Group[*part, answer] {
	return &groupcommit.Group[*part, answer]{
		Send: c.send, Unsent: func(err error) answer { return answer{err: err} },
		Weigh: loadOf, Limit: groupcommit.Load{Items: recordsPerCall, Bytes: bytesPerCall},
	}
}

// A part is an Append under way.
type part struct {
	*Append
	out  *Appended
	log  string // the partition's key
	meta Meta
	rest [][]string // what is not in yet

	n      int  // so many of these are under way
	weight int  // what they count for in a shared round trip, in bytes
	wide   bool // one record, with more fields than Lua's stack holds
	bare   bool // they are appended without a script, for they are wide or large
	exact  bool // they are not, though they are large: there may be too little room
	need   int  // so many of them need room: a duplicate needs none

	tries int // that found room and came too late, as others had taken it
	wait  pacer
	full  *FullError // why it waited last
}

// appendRound sends one bounded batch of each partition that has records left. It returns the
// partitions that have more to send, and those that are full.
func (c Producer) appendRound(ctx context.Context, open []*part) (more, full []*part) {
	now := make([]*part, 0, len(open))
	budget := bytesPerCall
	for i, p := range open {
		size := p.choose()
		if len(now) > 0 && size > budget {
			more = append(more, open[i:]...)
			break
		}
		if p.wide && p.Due != nil {
			p.out.Err = ErrTooWide
			continue
		}
		budget -= size
		now = append(now, p)
	}
	if len(now) == 0 {
		return more, nil
	}
	c.chooseBare(ctx, now)
	answers, broken := c.batches.Do(ctx, c.Conn, now, func(p *part) string { return p.log })
	errs := make([]error, len(now))
	var earlier []StreamPartition
	for i, p := range now {
		if errs[i] = broken; broken != nil {
			continue
		}
		if errs[i] = p.take(answers[i]); p.bare && !p.wide && errors.Is(errs[i], errFull) {
			errs[i], p.bare, p.exact = nil, false, true
		}
		if answers[i].earliest {
			earlier = append(earlier, StreamPartition{p.Stream, p.Partition})
		}
	}
	c.appendBare(ctx, now, errs)
	for i, p := range now {
		switch err := errs[i]; {
		case errors.Is(err, errFull):
			full = append(full, p)
		case err != nil:
			p.fail(c.NameWrongTypes(ctx, p.keys(c.core), err))
		case len(p.rest) > 0:
			more = append(more, p)
		}
	}
	if len(earlier) > 0 {
		Control(c).announceDue(ctx, earlier...)
	}
	return more, full
}

// Calls of at most this much share round trips. A larger one is sent alone and at once: it has
// little to gain, and would delay the others.
const (
	gatheredRecords = 100
	gatheredBytes   = 64 << 10
	textWeight      = 16 // bytes that each text counts for beside its own: Redis takes only so many at once
)

// choose chooses the records of the next call, and returns their size in bytes.
func (p *part) choose() (size int) {
	limit, fields := recordsPerCall, fieldsPerCall
	switch {
	case p.Due != nil:
		fields = delayedFields
	case p.meta.MaxLen > 0:
		limit = int(min(p.meta.MaxLen, recordsPerCall))
	}
	p.n, p.weight, p.wide = 0, 0, false
	for _, r := range p.rest {
		bytes := 0
		for _, s := range r {
			bytes += len(s)
		}
		wide := len(r) > fields
		if p.n > 0 && (p.n == limit || wide || size+bytes > bytesPerCall) {
			break
		}
		p.n, p.weight, size = p.n+1, p.weight+textWeight*len(r)+bytes, size+bytes
		if p.wide = wide; wide {
			break
		}
	}
	return size
}

// loadOf returns the load of the next records of parts.
func loadOf(parts []*part) (l groupcommit.Load, alone bool) {
	for _, p := range parts {
		l.Items, l.Bytes, alone = l.Items+p.n, l.Bytes+p.weight, alone || p.bare
	}
	return l, alone || l.Items > gatheredRecords || l.Bytes > gatheredBytes
}

// add takes the next records as appended, with the IDs that a script returned: of an entry, of the
// due queue, or behind "=" of what was sent before. It returns weak, which is nil or the error of
// replicas that have not confirmed these records.
func (p *part) add(ids []string, weak error) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		id, duplicate := strings.CutPrefix(id, "=")
		if duplicate {
			if p.out.Duplicate == nil {
				p.out.Duplicate = make([]bool, len(p.Records))
			}
			p.out.Duplicate[len(p.out.IDs)] = true
		}
		if !strings.Contains(id, "-") {
			id = DelayedID(p.Partition, id)
		}
		p.out.IDs = append(p.out.IDs, id)
	}
	p.rest = p.rest[len(ids):]
	p.tries, p.wait, p.exact = 0, pacer{}, false
	if weak != nil {
		p.out.Weak = len(ids)
	}
	return weak
}

func (p *part) fail(err error) {
	p.out.Err = classify(err)
	p.out.Unknown = errors.Is(p.out.Err, redisconn.ErrUnknownOutcome)
}
