package rstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// One script appends at most this much, so that it neither keeps the server for
// long nor outgrows Lua's stack. A larger record goes alone, without a script.
const (
	recordsPerCall = 1000
	bytesPerCall   = 4 << 20
	fieldsPerCall  = 7000
)

// An Append is what goes to one partition, in order.
type Append struct {
	Log     string     // the partition's key
	Records [][]string // each: field, value, field, value, …
}

// Appended is what became of an Append: the first len(IDs) records are in. Err is
// the error of the next one; the later ones were not tried. With Unknown that one
// and those behind it may be in or not, all or a part of them.
type Appended struct {
	IDs     []string
	Err     error
	Unknown bool
}

// Append appends the records of several partitions, in as few round trips as
// their size allows. What fails in one partition does not stop the others.
// It never repeats what may have been executed. No partition may be named twice.
func (c *Client) Append(ctx context.Context, as []Append) []Appended {
	out := make([]Appended, len(as))
	rest := make([][][]string, len(as))
	open := make([]int, 0, len(as))
	for i, a := range as {
		out[i].IDs = make([]string, 0, len(a.Records))
		rest[i] = a.Records
		if len(a.Records) > 0 {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		open = c.appendRound(ctx, as, rest, open, out)
	}
	return out
}

// appendRound sends one batch of each partition that has records left, bounded in
// all, and returns the partitions that have more to send.
func (c *Client) appendRound(ctx context.Context, as []Append, rest [][][]string, open []int, out []Appended) []int {
	var calls []*call
	var counts []int
	budget := bytesPerCall
	for _, i := range open {
		n, size := batchOf(rest[i])
		if len(calls) > 0 && size > budget {
			break
		}
		budget -= size
		calls = append(calls, appendCall(ctx, as[i].Log, rest[i][:n]))
		counts = append(counts, n)
	}
	pipeline(ctx, c.once, calls)
	more := append([]int{}, open[len(calls):]...)
	for at, call := range calls {
		i := open[at]
		take(call.reply, counts[at], &out[i])
		rest[i] = rest[i][counts[at]:]
		if out[i].Err == nil && len(rest[i]) > 0 {
			more = append(more, i)
		}
	}
	return more
}

// batchOf returns how many of the records go in one call, and their size.
func batchOf(records [][]string) (n, size int) {
	fields := 0
	for _, r := range records {
		bytes := 0
		for _, s := range r {
			bytes += len(s)
		}
		if n > 0 && (n == recordsPerCall || size+bytes > bytesPerCall || len(r) > fieldsPerCall) {
			return n, size
		}
		n, size, fields = n+1, size+bytes, len(r)
		if fields > fieldsPerCall {
			return n, size
		}
	}
	return n, size
}

func appendCall(ctx context.Context, log string, records [][]string) *call {
	if len(records) == 1 {
		args := make([]any, 3, 3+len(records[0]))
		args[0], args[1], args[2] = "XADD", log, "*"
		for _, s := range records[0] {
			args = append(args, s)
		}
		return plainCall(ctx, args...)
	}
	n := 0
	for _, r := range records {
		n += 1 + len(r)
	}
	args := make([]any, 0, n)
	for _, r := range records {
		args = append(args, strconv.Itoa(len(r)))
		for _, s := range r {
			args = append(args, s)
		}
	}
	return scriptCall(ctx, sendScript, []string{log}, args...)
}

// take adds the reply of a call for n records to what became of its partition. A
// value counts also beside an error: when a connection breaks, go-redis gives its
// error to the commands of the pipeline that were answered before, too.
func take(reply *redis.Cmd, n int, a *Appended) {
	switch v, err := reply.Result(); v := v.(type) {
	case string:
		if v != "" {
			a.IDs = append(a.IDs, v)
			return
		}
		a.fail(err)
	case []any:
		ids, text, ok := parseSent(v)
		a.IDs = append(a.IDs, ids...)
		switch {
		case !ok || (text == "" && len(ids) != n):
			a.fail(fmt.Errorf("unexpected reply of %d values for %d records", len(v), n))
		case text != "":
			a.fail(scriptError(text))
		}
	default:
		if err == nil {
			err = fmt.Errorf("unexpected reply %v", v)
		}
		a.fail(err)
	}
}

func (a *Appended) fail(err error) {
	a.Err = sorted(err)
	a.Unknown = errors.Is(a.Err, ErrUnknownOutcome)
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

var _ redis.Error = scriptError("")

// scriptError is an error reply that a script caught and handed on as text.
type scriptError string

func (e scriptError) Error() string { return string(e) }
func (e scriptError) RedisError()   {}
