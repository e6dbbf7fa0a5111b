package rstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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

// sendCall appends the next n records of a part. For a wide one it only finds out
// whether there is room.
func (c *Client) sendCall(ctx context.Context, p *part) *call {
	n := 3
	for _, r := range p.rest[:p.n] {
		n += 1 + len(r)
	}
	keys, args := []string{p.Log}, make([]any, 3, n)
	args[0], args[1], args[2] = p.meta.Size, p.n, p.meta.IDWindow
	if p.wide {
		return scriptCall(ctx, sendScript, keys, args...)
	}
	for i, r := range p.rest[:p.n] {
		count := len(r)
		if id := p.id(i); id != "" {
			keys, count = append(keys, c.keys.Once(p.Stream, p.Partition, id)), -count
		}
		args = append(args, strconv.Itoa(count))
		for _, s := range r {
			args = append(args, s)
		}
	}
	return scriptCall(ctx, sendScript, keys, args...)
}

// id is the ID of the i-th of the records that are not in yet, "" for none.
func (p *part) id(i int) string {
	if p.IDs == nil {
		return ""
	}
	return p.IDs[len(p.Records)-len(p.rest)+i]
}

// take adds the reply of a call to what became of the partition. Its error is
// that of the next record, errFull if the batch did not fit. A value counts also
// beside an error: when a connection breaks, go-redis gives its error to the
// commands of the pipeline that were answered before, too.
func (p *part) take(reply *redis.Cmd) error {
	v, err := reply.Result()
	list, _ := v.([]any)
	if list == nil && err != nil {
		return err
	}
	want := p.n
	if p.wide {
		want = 0
	}
	ids, text, ok := parseSent(list)
	if ok {
		p.add(ids)
	}
	switch {
	case !ok || text == "" && len(ids) != want:
		return fmt.Errorf("unexpected reply %v for %d records", v, want)
	case text == "FULL":
		return errFull
	case text != "":
		return scriptError(text)
	}
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

func parseSent(v []any) (ids []string, text string, ok bool) {
	if len(v) != 2 {
		return nil, "", false
	}
	list, ok1 := v[0].([]any)
	text, ok2 := v[1].(string)
	for _, id := range list {
		s, ok := id.(string)
		if !ok {
			return ids, text, false
		}
		ids = append(ids, s)
	}
	return ids, text, ok1 && ok2
}

// cutDuplicate takes a duplicate's mark off an ID.
func cutDuplicate(id string) (first string, duplicate bool) { return strings.CutPrefix(id, "=") }

var _ redis.Error = scriptError("")

// scriptError is an error reply that a script caught and handed on as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }
func (e scriptError) RedisError()   {}
