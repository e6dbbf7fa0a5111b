package rstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
)

// One script appends at most this much, so that it neither keeps the server for
// long nor outgrows Lua's stack.
const (
	recordsPerCall = 1000
	bytesPerCall   = 4 << 20
	fieldsPerCall  = 7000
)

// errFull says that a batch does not fit.
var errFull = errors.New("full")

// batchOf returns how many of the records go in one call, and their size. The
// partition may have the length most, 0 for any.
func batchOf(records [][]string, most int64) (n, size int) {
	limit := recordsPerCall
	if most > 0 {
		limit = int(min(most, recordsPerCall))
	}
	for _, r := range records {
		bytes := 0
		for _, s := range r {
			bytes += len(s)
		}
		if n > 0 && (n == limit || size+bytes > bytesPerCall || len(r) > fieldsPerCall) {
			return n, size
		}
		n, size = n+1, size+bytes
		if len(r) > fieldsPerCall {
			return n, size
		}
	}
	return n, size
}

// A sending is one script call for some of the partitions.
type sending struct {
	parts   []*part
	records int
	keys    []string
	args    []any
}

// send appends the next n records of each part, with as few script calls as the
// layout of the keys allows, all in one round trip: for a few records the call
// itself takes as long as they do. Of a wide part it only finds out whether there is
// room.
func (c *Client) send(ctx context.Context, parts []*part) []error {
	var all []*sending
	var s *sending
	for _, p := range parts {
		if s == nil || c.keys.Layout != keys.Standalone || s.records+p.n > recordsPerCall {
			s = &sending{}
			all = append(all, s)
		}
		s.add(c, p)
	}
	calls := make([]*call, len(all))
	for i, s := range all {
		calls[i] = scriptCall(ctx, sendScript, s.keys, s.args...)
	}
	pipeline(ctx, c.once, calls)
	errs := make([]error, 0, len(parts))
	for i, s := range all {
		errs = append(errs, s.take(calls[i].reply)...)
	}
	return errs
}

// add adds the next n records of a part.
func (s *sending) add(c *Client, p *part) {
	s.parts, s.records = append(s.parts, p), s.records+p.n
	records, keys, begin := p.rest[:p.n], len(s.keys), len(s.args)
	s.keys = append(s.keys, p.Log)
	most := 5
	for _, r := range records {
		most += 2 + len(r)
	}
	s.args = append(slices.Grow(s.args, most), 0, 0, p.meta.Size, p.n, p.meta.idWindow())
	for at := 0; at < len(records) && !p.wide; {
		first, n := records[at], p.run(at)
		count := n
		if p.id(at) != "" {
			count = -n
		}
		s.args = append(s.args, count, len(first)/2)
		for f := 0; f < len(first); f += 2 {
			s.args = append(s.args, &first[f]) // a pointer: a string would be copied to the heap
		}
		for _, r := range records[at : at+n] {
			for f := 1; f < len(r); f += 2 {
				s.args = append(s.args, &r[f])
			}
			if id := p.id(at); id != "" {
				s.keys = append(s.keys, c.keys.Once(p.Stream, p.Partition, id))
			}
			at++
		}
	}
	s.args[begin], s.args[begin+1] = len(s.keys)-keys, len(s.args)-begin-2
}

// take adds the reply of the call to what became of its partitions. The error of
// each is that of its next record.
func (s *sending) take(reply *redis.Cmd) []error {
	// A value counts also beside an error: when a connection breaks, go-redis gives its
	// error to the commands of the pipeline that were answered before, too.
	v, err := reply.Result()
	texts, _ := v.([]any)
	errs := make([]error, len(s.parts))
	for i, p := range s.parts {
		text, ok := "", false
		if len(texts) == len(s.parts) {
			text, ok = texts[i].(string)
		}
		switch {
		case ok:
			errs[i] = p.take(text)
		case err == nil:
			errs[i] = fmt.Errorf("unexpected reply %v", v)
		default:
			errs[i] = err
		}
	}
	return errs
}

// run is how many of the records under way, from the at-th on, have the names of
// its fields, which then travel once, and have IDs as it has.
func (p *part) run(at int) int {
	first, n := p.rest[at], 1
	for ; at+n < p.n; n++ {
		r := p.rest[at+n]
		if len(r) != len(first) || (p.id(at+n) == "") != (p.id(at) == "") {
			return n
		}
		for f := 0; f < len(r); f += 2 {
			if r[f] != first[f] {
				return n
			}
		}
	}
	return n
}

// id is the ID of the i-th of the records that are not in yet, "" for none.
func (p *part) id(i int) string {
	if p.IDs == nil {
		return ""
	}
	return p.IDs[len(p.Records)-len(p.rest)+i]
}

// take adds what the script says of the partition to what became of it. Its error is
// that of the next record, errFull if the batch did not fit.
func (p *part) take(text string) (err error) {
	switch {
	case strings.HasPrefix(text, "!"):
		return scriptError(text[1:])
	case strings.HasPrefix(text, "FULL "):
		if p.need, err = strconv.Atoi(text[len("FULL "):]); err != nil {
			return fmt.Errorf("unexpected reply %q", text)
		}
		return errFull
	case p.wide:
		return nil
	}
	ids := strings.Split(text, " ")
	if len(ids) != p.n || text == "" {
		return fmt.Errorf("unexpected reply %q for %d records", text, p.n)
	}
	p.add(ids)
	return nil
}

// appendWide appends a record without a script, so that two at once may exceed
// the length that the partition may have by one.
func (c *Client) appendWide(ctx context.Context, p *part) error {
	if p.id(0) != "" {
		return fmt.Errorf("a record of more than %d fields cannot have an ID", fieldsPerCall/2)
	}
	args := make([]any, 3, 3+len(p.rest[0]))
	args[0], args[1], args[2] = "XADD", p.Log, "*"
	for _, s := range p.rest[0] {
		args = append(args, s)
	}
	id, err := c.once.Do(ctx, args...).Text()
	if err == nil {
		p.add([]string{id})
	}
	return err
}

var _ redis.Error = scriptError("")

// scriptError is an error reply that a script caught and handed on as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }
func (e scriptError) RedisError()   {}
