package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	tailEntries = 128
	tailBytes   = 8 << 20

	// How large entries are is known once they have been read. Until then the next ones count with
	// tailUnknown bytes, and never with less than tailSmallest. tailGroup is the least number of logs that
	// one request names: requests for 2 000 logs should not become 2 000.
	tailUnknown  = 256 << 10
	tailSmallest = 1 << 10
	tailGroup    = 16

	// A read in which most of the logs had nothing is followed by a pause of so much for each of them. One
	// XREAD of 2 000 logs costs the server as much as 30 GETs, or, with a log in each of 2 000 slots, as
	// 120: without the pause, one entry at a time would keep the server busy with looking for the next one.
	tailRest      = 10 * time.Microsecond
	tailSlotRest  = 50 * time.Microsecond
	shortTailRest = time.Millisecond // anything below is no pause
)

// errWoken is the cause of the end of a read that Tail.Wake ended.
var errWoken = errors.New("woken")

// TailOptions bound what a Tail reads at once; 0 is the default.
type TailOptions struct {
	Entries int // most of each log in one Read; 128
	// Bytes is about how much one Read brings of all logs together; 8 MiB. It is kept by the largest of the
	// recent entries, as Redis does not tell the size of what it has not sent. So a Read may bring more where
	// entries have become larger, but at most Bytes / 1 KiB entries. It may bring one of each of 16 logs, whatever
	// their size, and one of each log if they come to all at once while Read waits.
	Bytes int
}

// A Tail reads logs behind given IDs, without a group: it takes nothing from anybody, and has no effect on
// the server. It has one connection, in a cluster one to each node that it reads of. One goroutine may read at
// a time; Wake may be called by others meanwhile.
type Tail struct {
	r    *Reader
	opts TailOptions

	// Of the goroutine that reads.
	size  int       // bytes that count for each entry of the next read
	turn  int       // where the next group of logs begins
	quiet bool      // the last read waited in vain: there will be nothing at once
	rest  time.Time // when the logs are looked at again

	mu    sync.Mutex
	woken bool
	wake  context.CancelCauseFunc // ends what the current read waits for
}

// NewTail returns a reader of logs, which connects when it first reads.
func (c *Conn) NewTail(opts TailOptions) *Tail {
	opts.Entries = cmp.Or(max(opts.Entries, 0), tailEntries)
	opts.Bytes = cmp.Or(max(opts.Bytes, 0), tailBytes)
	r := c.NewReader()
	r.tail = true
	return &Tail{r: r, opts: opts, size: tailUnknown}
}

// Wake ends a Read that waits, or keeps the next one from waiting, so that the caller can change the logs.
// It does not block, and a Read that has entries already returns them. No Wake is lost; several may end one
// Read.
func (t *Tail) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.woken = true
	if t.wake != nil {
		t.wake(errWoken)
	}
}

// Close closes the connections. A Read under way fails.
func (t *Tail) Close() error { return t.r.Close() }

// Read reads entries behind the IDs after, one for each log, and waits at most wait for the first; without
// wait it does not. No log may be named twice; without any, Read only waits. The caller keeps the positions: the
// next call goes on behind the last entry of each chunk. Nothing, and no error, means that no log had entries, or
// that Wake was called.
//
// One server is asked for all logs at once. Where the recent entries are so large that one of each log would be
// more than TailOptions.Bytes, logs are asked for in groups, which take turns, before Read waits for all of them. In
// a cluster logs of several slots are asked for in turn; see sweep. If most of many logs had nothing, the next Read
// begins later, by 10 µs for each of them, or 50 µs for each slot of a cluster.
//
// Since a read has no effect, it may be repeated after any error, also of unknown outcome. An error may come with
// chunks, which are as good as without. ErrWrongType names the keys, and the other logs are read nevertheless. The
// end of ctx ends Read at once, with its cause. Deadlines of Read's own end reads that a server does not answer, a
// second after wait.
func (t *Tail) Read(ctx context.Context, logs, after []string, wait time.Duration) ([]Chunk, error) {
	waiting, end := t.begin(ctx)
	defer end()
	q := tailed{logs, after}
	deadline := time.Now().Add(wait)
	if wait > 0 && !waitUntil(waiting, earlier(t.rest, deadline)) {
		t.quiet = false
	}
	var out []Chunk
	var err error
	polled := wait <= 0 || !t.quiet || waiting.Err() != nil
	if polled {
		out, err = t.poll(ctx, waiting, q)
	}
	if len(out) == 0 && err == nil && waiting.Err() == nil {
		if left := time.Until(deadline); left > 0 || !polled {
			out, err = t.block(waiting, q, left)
		}
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("read %d logs: %w", len(logs), err)
	}
	return out, err
}

// begin returns the context of what Wake may end, and what to call at the end of the read.
//
// A Wake before that is found in woken, a Wake after that ends the context. One that comes while the read returns
// counts for it: its caller has the next word.
func (t *Tail) begin(ctx context.Context) (waiting context.Context, end func()) {
	waiting, wake := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake = wake
	if t.woken {
		wake(errWoken)
	}
	return waiting, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.woken, t.wake = false, nil
		wake(nil)
	}
}

// poll asks for all logs without waiting, one group after the other until there is something. Wake ends it between
// two groups only: otherwise a read that is woken again and again would never bring anything.
func (t *Tail) poll(ctx, waiting context.Context, q tailed) (out []Chunk, err error) {
	for left := len(q.logs); left > 0 && len(out) == 0 && err == nil; {
		group := min(left, max(t.budget(), tailGroup))
		out, err = t.ask(ctx, q.group(t.turn, group), 0)
		t.turn, left = t.turn+group, left-group
		if left > 0 && waiting.Err() != nil {
			break
		}
	}
	return out, err
}

// block waits for an entry in any log.
func (t *Tail) block(waiting context.Context, q tailed, wait time.Duration) (out []Chunk, err error) {
	if len(q.logs) == 0 {
		waitUntil(waiting, time.Now().Add(wait))
	} else {
		out, err = t.ask(waiting, q, max(wait, time.Millisecond))
	}
	if waiting.Err() != nil && !IsReply(err) {
		err = nil // it is how the wait ended
	}
	t.quiet = len(out) == 0 && err == nil && waiting.Err() == nil
	return out, err
}

// budget returns how many entries one read may bring.
func (t *Tail) budget() int { return max(1, t.opts.Bytes/t.size) }

// ask asks for an equal share of each log first, and then for more where there is more. An error of the second
// request is left to the next read.
func (t *Tail) ask(ctx context.Context, q tailed, block time.Duration) ([]Chunk, error) {
	room := t.budget()
	share := min(max(1, room/len(q.logs)), t.opts.Entries)
	out, err := t.request(ctx, q, share, block)
	if len(out) == 0 {
		return nil, err
	}
	t.restAfter(q, len(out))
	var full []int
	for i, c := range out {
		room -= len(c.Entries)
		if len(c.Entries) == share && share < t.opts.Entries {
			full = append(full, i)
		}
	}
	t.learn(out)
	room = min(room, t.budget())
	full = full[:max(0, min(len(full), room))]
	if len(full) == 0 || err != nil || ctx.Err() != nil {
		return out, err
	}
	var behind tailed
	at := map[string]int{}
	for _, i := range full {
		at[out[i].Key] = i
		behind.logs = append(behind.logs, out[i].Key)
		behind.after = append(behind.after, out[i].Entries[len(out[i].Entries)-1].ID)
	}
	more, _ := t.request(ctx, behind, min(t.opts.Entries-share, room/len(full)), 0)
	t.learn(more)
	for _, c := range more {
		out[at[c.Key]].Entries = append(out[at[c.Key]].Entries, c.Entries...)
	}
	return out, nil
}

// request sends one request to each server. If a log is of a wrong type, the server refuses to read the others,
// too: they are asked for again without it.
func (t *Tail) request(ctx context.Context, q tailed, count int, block time.Duration) ([]Chunk, error) {
	out, err := t.r.Follow(ctx, q.logs, q.after, count, block)
	if !errors.Is(err, ErrWrongType) {
		return out, err
	}
	err = t.r.c.NameWrongTypes(ctx, q.logs, err)
	if wrong := (*WrongTypeError)(nil); errors.As(err, &wrong) {
		if q = q.without(wrong.keys); len(q.logs) > 0 {
			again, failed := t.r.Follow(ctx, q.logs, q.after, count, 0)
			return again, errors.Join(err, failed)
		}
	}
	return out, err
}

// restAfter notes when the logs are looked at again.
func (t *Tail) restAfter(q tailed, found int) {
	t.rest = time.Time{}
	rest := time.Duration(len(q.logs)-found) * tailRest
	if slots := len(t.r.c.Slots(len(q.logs), len(q.logs), func(i int) string { return q.logs[i] })); slots > 1 {
		rest = time.Duration(slots-found) * tailSlotRest
	}
	if rest > shortTailRest {
		t.rest = time.Now().Add(rest)
	}
}

// learn notes the largest entry of a read. What was larger before is forgotten soon, not at once.
func (t *Tail) learn(out []Chunk) {
	largest := 0
	for _, c := range out {
		for _, e := range c.Entries {
			largest = max(largest, sizeOf(e))
		}
	}
	if largest > 0 {
		t.size = max(largest, t.size/4, tailSmallest)
	}
}

func sizeOf(e Entry) int {
	n := len(e.ID)
	for name, value := range e.Values {
		text, _ := value.(string)
		n += len(name) + len(text)
	}
	return n
}

// A tailed is what to read: logs, and the ID behind which each is read.
type tailed struct{ logs, after []string }

// group returns n of the logs, in the order of a ring.
func (q tailed) group(from, n int) (g tailed) {
	if n == len(q.logs) {
		return q
	}
	for i := range n {
		at := (from + i) % len(q.logs)
		g.logs, g.after = append(g.logs, q.logs[at]), append(g.after, q.after[at])
	}
	return g
}

// without returns all but some of the logs.
func (q tailed) without(wrong []string) (rest tailed) {
	out := map[string]bool{}
	for _, log := range wrong {
		out[log] = true
	}
	for i, log := range q.logs {
		if !out[log] {
			rest.logs, rest.after = append(rest.logs, log), append(rest.after, q.after[i])
		}
	}
	return rest
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// waitUntil waits and reports whether ctx still lives.
func waitUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
