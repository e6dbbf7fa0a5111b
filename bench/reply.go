package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// A reply is what XREADGROUP answers, read from its bytes without an allocation for
// each entry: all strings are parts of one. It shows what go-redis' own reading,
// which makes a map of every entry, costs.
type reply struct {
	rest string
	err  error
}

// errReply is a reply of another shape.
var errReply = errors.New("not a reply of XREADGROUP")

// readReply calls each for every entry with its stream, its ID and its first value.
// Nothing there is no entry and no error. The strings are parts of raw.
func readReply(raw []byte, each func(log, id, value string)) error {
	r := &reply{rest: unsafe.String(unsafe.SliceData(raw), len(raw))}
	if bytes.HasPrefix(raw, []byte("_")) || bytes.HasPrefix(raw, []byte("*-1")) {
		return nil
	}
	streams, pairs := r.length()
	for range streams {
		if !pairs { // RESP2 has a list where RESP3 has a map
			r.expect(2)
		}
		log := r.text()
		entries, _ := r.length()
		for range entries {
			r.expect(2)
			id := r.text()
			fields, _ := r.length()
			value := ""
			for f := range fields {
				if text := r.text(); f == 1 {
					value = text
				}
			}
			if r.err != nil {
				return r.err
			}
			each(log, id, value)
		}
	}
	return r.err
}

func (r *reply) line(marks string) (mark byte, n int) {
	if r.err != nil {
		return 0, 0
	}
	end := strings.IndexByte(r.rest, '\r')
	if end <= 0 || end+2 > len(r.rest) {
		r.err = errReply
		return 0, 0
	}
	mark = r.rest[0]
	n, err := strconv.Atoi(r.rest[1:end])
	if err != nil || n < 0 || strings.IndexByte(marks, mark) < 0 {
		r.err = fmt.Errorf("%w: %q", errReply, r.rest[:end])
		return 0, 0
	}
	r.rest = r.rest[end+2:]
	return mark, n
}

func (r *reply) length() (n int, pairs bool) {
	mark, n := r.line("*%")
	return n, mark == '%'
}

func (r *reply) expect(n int) {
	if got, _ := r.length(); got != n && r.err == nil {
		r.err = fmt.Errorf("%w: %d elements, want %d", errReply, got, n)
	}
}

func (r *reply) text() string {
	_, n := r.line("$")
	if r.err != nil || n+2 > len(r.rest) {
		r.err = errReply
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n+2:]
	return text
}

// readReplies is read with the bytes of the replies.
func (p *plain) readReplies(ctx context.Context, logs []string) error {
	args := []any{"XREADGROUP", "GROUP", p.t.Run, "plain", "COUNT", p.t.Count, "STREAMS"}
	for _, arg := range newEntries(logs) {
		args = append(args, arg)
	}
	for p.m.n.Load() < p.m.want {
		raw, err := p.rdb.DoRaw(ctx, args...).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("read: %w", err)
		}
		var done acks
		err = readReply(raw, func(log, id, _ string) {
			if log != done.log && len(done.ids) > 0 {
				p.acks[done.log] <- done
				done.ids = nil
			}
			done.log, done.ids = log, append(done.ids, id)
			p.m.add(1)
		})
		if err != nil {
			return err
		}
		if len(done.ids) == 0 {
			return nil // others have the rest
		}
		p.acks[done.log] <- done
	}
	return nil
}
