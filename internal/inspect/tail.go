package inspect

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/rstream"
)

const (
	tailPage = 100 // entries of a partition per read
	tailWait = time.Second
)

// A Tail reads the entries of some partitions in the order of their IDs: within a
// partition exactly, between partitions as far as the clocks of their IDs tell. It
// reads without a group: it takes nothing from any processor. One goroutine may use
// it; Close must be called.
type Tail struct {
	client *rstream.Client
	reader *rstream.Reader
	parts  []*tailed
	ready  byFirst // those of the partitions that have entries
}

// A tailed is a partition of a Tail.
type tailed struct {
	number  int
	log     string
	after   string          // everything up to here was read
	entries []rstream.Entry // read and not yet returned
	dry     bool            // there was nothing more
}

// byFirst is a heap of partitions, the one with the lowest ID first.
type byFirst []*tailed

func (b byFirst) Len() int { return len(b) }
func (b byFirst) Less(i, j int) bool {
	return rstream.CompareIDs(b[i].entries[0].ID, b[j].entries[0].ID) < 0
}
func (b byFirst) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *byFirst) Push(p any)   { *b = append(*b, p.(*tailed)) }
func (b *byFirst) Pop() any {
	last := len(*b) - 1
	p := (*b)[last]
	*b = (*b)[:last]
	return p
}

// A TailedEvent is an entry and the partition that it is in.
type TailedEvent struct {
	Partition int
	Entry     rstream.Entry
}

// NewTail begins behind an entry ID in every one of the partitions; "0-0" is their
// beginning.
func NewTail(c *rstream.Client, stream string, partitions []int, after string) *Tail {
	t := &Tail{client: c, reader: c.NewReader()}
	for _, n := range partitions {
		t.parts = append(t.parts, &tailed{number: n, log: c.Keys().Partition(stream, n), after: after})
	}
	return t
}

// Close ends the tail's connection.
func (t *Tail) Close() error { return t.reader.Close() }

// ToEnd moves on to the end of every partition, but for the last n entries of all
// together.
func (t *Tail) ToEnd(ctx context.Context, n int) error {
	pipe := t.client.Redis().Pipeline()
	replies := make([]*redis.XMessageSliceCmd, len(t.parts))
	for i, p := range t.parts {
		replies[i] = pipe.XRevRangeN(ctx, p.log, "+", "-", int64(max(n, 1)))
	}
	pipe.Exec(ctx) // every reply carries its error
	kept := 0
	t.ready = nil
	for i, p := range t.parts {
		newest, err := replies[i].Result()
		if err != nil {
			return fmt.Errorf("end of %s: %w", p.log, err)
		}
		p.entries, p.dry = nil, true
		if len(newest) > 0 {
			p.after = newest[0].ID
		}
		for k := min(n, len(newest)) - 1; k >= 0; k-- {
			p.entries = append(p.entries, newest[k])
		}
		kept += len(p.entries)
		t.arrived(p)
	}
	for ; kept > n; kept-- {
		t.pop()
	}
	return nil
}

// Next returns the next entry. Without one it waits for the next until ctx ends,
// whose error it returns, or returns false if it is not to wait.
func (t *Tail) Next(ctx context.Context, wait bool) (TailedEvent, bool, error) {
	for {
		if err := t.fill(ctx); err != nil {
			return TailedEvent{}, false, err
		}
		if e, ok := t.pop(); ok || !wait {
			return e, ok, nil
		}
		if err := ctx.Err(); err != nil {
			return TailedEvent{}, false, err
		}
		if err := t.read(ctx, t.parts, tailWait); err != nil {
			return TailedEvent{}, false, err
		}
	}
}

// fill reads of every partition of which the next entry is not known.
func (t *Tail) fill(ctx context.Context) error {
	for {
		var empty []*tailed
		for _, p := range t.parts {
			if len(p.entries) == 0 && !p.dry {
				empty = append(empty, p)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		if err := t.read(ctx, empty, 0); err != nil {
			return err
		}
	}
}

func (t *Tail) read(ctx context.Context, parts []*tailed, wait time.Duration) error {
	logs, after, byLog := make([]string, len(parts)), make([]string, len(parts)), map[string]*tailed{}
	for i, p := range parts {
		logs[i], after[i], byLog[p.log] = p.log, p.after, p
		p.dry = true
	}
	chunks, err := t.reader.Follow(ctx, logs, after, tailPage, wait)
	if err != nil {
		return fmt.Errorf("read %d partitions: %w", len(parts), err)
	}
	for _, c := range chunks {
		p := byLog[c.Key]
		had := len(p.entries)
		p.entries = append(p.entries, c.Entries...)
		if had == 0 {
			t.arrived(p)
		}
		p.after = c.Entries[len(c.Entries)-1].ID
		p.dry = len(c.Entries) < tailPage
	}
	return nil
}

// arrived notes that a partition, which had none, may have entries now.
func (t *Tail) arrived(p *tailed) {
	if len(p.entries) > 0 {
		heap.Push(&t.ready, p)
	}
}

// pop takes the entry with the lowest ID of those that were read.
func (t *Tail) pop() (TailedEvent, bool) {
	if len(t.ready) == 0 {
		return TailedEvent{}, false
	}
	p := t.ready[0]
	e := TailedEvent{p.number, p.entries[0]}
	if p.entries = p.entries[1:]; len(p.entries) > 0 {
		heap.Fix(&t.ready, 0)
	} else {
		heap.Pop(&t.ready)
	}
	return e, true
}
