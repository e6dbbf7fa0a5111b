package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
)

// Bounds for one script, so that it neither keeps the server long nor outgrows Lua's stack.
const (
	recordsPerCall = 1000
	bytesPerCall   = 4 << 20
	fieldsPerCall  = 7000
)

// errFull means that a batch does not fit.
var errFull = errors.New("full")

// A sending is one script call: for some of the partitions, or for one with due times.
type sending struct {
	parts   []*part
	at      []int // the place of each among those of the round trip
	records int
	shape   []string // a record with the names of the last shape
	shapes  int
	keys    []string
	names   []any // arguments of the shapes
	args    []any // arguments of the partitions
}

// An answer is what a script returned for a part.
type answer struct {
	words    []string // of the text
	refusal  string   // with which "!" refuses it
	err      error    // of the record behind the words; without words there is no answer
	weak     error    // ErrNotReplicated: what was appended may get lost
	earliest bool     // a delayed record is due before all others of the partition
}

// send appends the next n records of each part, with as few script calls as the key layout allows,
// all in one round trip: a call takes as long as a few records. For a bare part it only finds out
// whether there is room. It only reads the parts; the answers are for part.take.
func (c Producer) send(ctx context.Context, parts []*part) []answer {
	answers := make([]answer, len(parts))
	all := make([]*sending, 0, 1)
	for i, p := range parts {
		var s *sending
		for _, t := range all {
			if c.keys.Layout == keys.Standalone && t.serves(p) {
				s = t
			}
		}
		if s == nil {
			s = &sending{}
			all = append(all, s)
		}
		s.at, s.parts, s.records = append(s.at, i), append(s.parts, p), s.records+p.n
	}
	calls := make([]*redisconn.Call, len(all))
	for i, s := range all {
		calls[i] = s.call(ctx, c.core)
	}
	weak := c.Durably(ctx, calls)
	for i, s := range all {
		if p := s.parts[0]; p.Due != nil {
			answers[s.at[0]] = delayedAnswer(calls[i].Reply, p.n)
		} else {
			s.split(calls[i].Reply, answers)
		}
	}
	for i := 0; weak != nil && i < len(answers); i++ {
		answers[i].weak = weak
	}
	return answers
}

// serves reports whether the call may include a part, too. A server that forbids the keys of one
// stream, or those of IDs, refuses a call as a whole; that must not hit other senders.
func (s *sending) serves(p *part) bool {
	first := s.parts[0]
	return first.Due == nil && p.Due == nil && s.records+p.n <= recordsPerCall && first.Stream == p.Stream && first.Kind == p.Kind && (first.IDs == nil) == (p.IDs == nil) &&
		first.meta.MaxLen == p.meta.MaxLen && first.meta.dedupWindow() == p.meta.dedupWindow()
}

// call returns the call of the script for delayed records, for plain ones if all are, or for any.
func (s *sending) call(ctx context.Context, c *core) *redisconn.Call {
	if p := s.parts[0]; p.Due != nil {
		return p.delayCall(ctx, c)
	}
	meta, plain, send := s.parts[0].meta, plainScript, sendScript
	isNumbered := meta.Kind == KindTopic
	if isNumbered {
		plain, send = numberedPlainScript, numberedSendScript
	}
	call := func(script *redis.Script, args []any) *redisconn.Call {
		if isNumbered {
			s.keys, args = s.numbers(c.keys, s.keys, args)
		}
		return redisconn.ScriptCall(ctx, script, s.keys, args...)
	}
	if name, ok := s.plain(); ok {
		args := append(make([]any, 0, 3+s.records), meta.MaxLen, name, nil)
		counts := make([]byte, 0, 2*len(s.parts))
		for _, p := range s.parts {
			s.keys, counts = append(s.keys, p.log), binary.BigEndian.AppendUint16(counts, uint16(p.n)) // at most recordsPerCall
			for _, r := range p.rest[:p.n] {
				args = append(args, &r[1]) // a pointer: a string would be copied to the heap
			}
		}
		args[2] = counts
		return call(plain, args)
	}
	for _, p := range s.parts {
		s.add(c, p)
	}
	args := append(make([]any, 0, 3+len(s.names)+len(s.args)), meta.MaxLen, meta.dedupWindow(), s.shapes)
	return call(send, append(append(args, s.names...), s.args...))
}

// plain reports whether all records have one field, of one name, and no IDs, as most do.
func (s *sending) plain() (name string, ok bool) {
	for _, p := range s.parts {
		if p.IDs != nil || p.bare {
			return "", false
		}
		for _, r := range p.rest[:p.n] {
			if len(r) != 2 || (name != "" && r[0] != name) {
				return "", false
			}
			name = r[0]
		}
	}
	return name, true
}

// add adds the next n records of a part, in the form of send.lua.
func (s *sending) add(c *core, p *part) {
	records, keys, begin := p.rest[:p.n], len(s.keys)+1, len(s.args)
	s.keys = append(s.keys, p.log)
	s.args = append(slices.Grow(s.args, 5+len(records)*len(records[0])/2), 0, p.asked(), 0)
	for at := 0; at < len(records) && !p.bare; {
		n := p.run(at)
		count := n
		if p.id(at) != "" {
			count = -n
		}
		s.args = append(s.args, count, s.shapeOf(records[at]))
		for _, r := range records[at : at+n] {
			for f := 1; f < len(r); f += 2 {
				s.args = append(s.args, &r[f]) // a pointer: a string would be copied to the heap
			}
			if id := p.id(at); id != "" {
				s.keys = append(s.keys, c.keys.Once(p.Stream, p.Partition, id))
			}
			at++
		}
	}
	s.args[begin], s.args[begin+2] = len(s.keys)-keys, len(s.args)-begin-3
}

// shapeOf returns the number of a record's shape. Equal names of consecutive records travel once.
func (s *sending) shapeOf(record []string) int {
	if s.shapes == 0 || !sameNames(s.shape, record) {
		s.shape, s.shapes = record, s.shapes+1
		s.names = append(s.names, len(record)/2)
		for f := 0; f < len(record); f += 2 {
			s.names = append(s.names, &record[f])
		}
	}
	return s.shapes
}

// split gives each part its answer. An error is that of the part's next record.
func (s *sending) split(reply *redis.Cmd, answers []answer) {
	// A value counts even beside an error: when a connection breaks, go-redis also fails commands
	// that were answered.
	v, err := reply.Result()
	var words, refusals []string
	if texts := textsOf(v); len(texts) > 0 {
		words, refusals = strings.Split(texts[0], " "), texts[1:]
	} else if err == nil {
		err = fmt.Errorf("unexpected reply %v", v)
	}
	for i, p := range s.parts {
		a := &answers[s.at[i]]
		n := 1
		if len(words) > 0 && words[0] != "!" && !strings.HasPrefix(words[0], "FULL:") && !p.bare {
			n = p.n
		}
		switch {
		case len(words) >= n:
			a.words, words = words[:n], words[n:]
		case len(words) > 0 || err == nil:
			words, err = nil, fmt.Errorf("unexpected reply %v", v)
		}
		if a.words == nil {
			a.err = err
		} else if a.words[len(a.words)-1] == "!" && len(refusals) > 0 {
			a.refusal, refusals = refusals[0], refusals[1:]
		}
	}
}

// textsOf returns a reply that is a list of texts, else nil.
func textsOf(v any) []string {
	list, _ := v.([]any)
	texts := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		texts[i] = text
	}
	return texts
}

// run returns how many records under way, from at on, have the same field names, which then travel
// once, and all have IDs or none.
func (p *part) run(at int) int {
	n := 1
	for at+n < p.n && (p.id(at+n) == "") == (p.id(at) == "") && sameNames(p.rest[at+n], p.rest[at]) {
		n++
	}
	return n
}

// sameNames reports whether the fields of two records have the same names.
func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for f := 0; f < len(a); f += 2 {
		if a[f] != b[f] {
			return false
		}
	}
	return true
}

// id returns the ID of the i-th record that is not in yet, "" for none.
func (p *part) id(i int) string {
	if p.IDs == nil {
		return ""
	}
	return p.IDs[len(p.Records)-len(p.rest)+i]
}

// keys returns the keys of the records under way, or of what is left of them.
func (p *part) keys(c *core) []string {
	keys := []string{p.log}
	if p.Due != nil {
		keys = c.delayKeys(p.Stream, p.Partition)
	}
	for i := range min(p.n, len(p.rest)) {
		if id := p.id(i); id != "" {
			keys = append(keys, c.keys.Once(p.Stream, p.Partition, id))
		}
	}
	return keys
}

// take adds what a script returned for the part. The error is that of the next record, or errFull
// if the batch did not fit.
func (p *part) take(a answer) error {
	if p.Due != nil || len(a.words) == 0 {
		return cmp.Or(p.add(a.words, a.weak), a.err)
	}
	need, full := strings.CutPrefix(a.words[0], "FULL:")
	switch {
	case a.refusal != "":
		return cmp.Or(p.add(a.words[:slices.Index(a.words, "!")], a.weak), error(redisconn.ScriptError(a.refusal)))
	case full:
		n, err := strconv.Atoi(need)
		if err != nil {
			return fmt.Errorf("unexpected reply %q", a.words)
		}
		p.need = n
		return errFull
	case p.bare && a.words[0] == ".":
		return nil
	case p.bare || a.words[0] == "!" || a.words[0] == ".":
		return fmt.Errorf("unexpected reply %q for %d records", a.words, p.n)
	}
	return p.add(a.words, a.weak)
}
