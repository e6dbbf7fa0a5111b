package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	tailPage = 100 // entries of a partition per read
	tailWait = time.Second
)

// A Tail reads the entries of some partitions in the order of their IDs: within a partition
// exactly, between partitions by the clocks of their IDs. It uses no group, and takes no entry from
// any processor. It is for use by one goroutine, which must call Close.
type Tail struct {
	client *store.Client
	reader *redisconn.Reader
	stream string
	parts  []*tailed
	pace   Pace
	stock  stock
	ready  byFirst // partitions with entries
}

type tailed struct {
	number  int
	log     string
	after   string            // everything up to here was read
	entries []redisconn.Entry // read and not yet returned
	dry     bool              // the last read found nothing more
}

// byFirst is a heap of partitions, the lowest next ID first.
type byFirst []*tailed

func (b byFirst) Len() int { return len(b) }
func (b byFirst) Less(i, j int) bool {
	return cmp.Or(entryid.Compare(b[i].entries[0].ID, b[j].entries[0].ID), cmp.Compare(b[i].number, b[j].number)) < 0
}
func (b byFirst) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *byFirst) Push(p any)   { *b = append(*b, p.(*tailed)) }
func (b *byFirst) Pop() any {
	last := len(*b) - 1
	p := (*b)[last]
	*b = (*b)[:last]
	return p
}

// A TailedEvent is an entry and its partition.
type TailedEvent struct {
	Partition int
	Entry     redisconn.Entry
}

// NewTail begins behind an entry ID in each partition; "0-0" is the beginning.
func NewTail(c *store.Client, stream string, partitions []int, after string) *Tail {
	t := &Tail{client: c, reader: c.NewReader(), stream: stream}
	for _, n := range partitions {
		t.parts = append(t.parts, &tailed{number: n, log: c.Keys().Partition(stream, n), after: after})
	}
	return t
}

func (t *Tail) Close() error { return t.reader.Close() }

// ToEnd skips to the end of all partitions, except for the last n entries of all together.
func (t *Tail) ToEnd(ctx context.Context, n int) error {
	count := 0
	for _, p := range t.parts {
		count = max(count, p.number+1)
	}
	logs, err := t.client.Logs(ctx, t.stream, count)
	if err != nil {
		return err
	}
	t.ready = nil
	parts := map[int]*tailed{}
	back := &Back{client: t.client}
	for _, p := range t.parts {
		l := logs[p.number]
		if l.Err != nil {
			return fmt.Errorf("end of %s: %w", p.log, l.Err)
		}
		p.entries, p.dry, p.after, parts[p.number] = nil, true, l.End, p
		back.parts = append(back.parts, &backed{number: p.number, log: p.log, from: l.End, page: backFirst, dry: l.Length == 0})
	}
	for range n {
		e, ok, err := back.Next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		p := parts[e.Partition]
		p.entries = append(p.entries, t.stock.put(e.Entry))
	}
	for _, p := range t.parts {
		slices.Reverse(p.entries)
		t.arrived(p)
	}
	return nil
}

// Next returns the next entry. If there is none, it returns false; with wait it blocks until there
// is one, or returns the error of ctx.
func (t *Tail) Next(ctx context.Context, wait bool) (TailedEvent, bool, error) {
	for {
		if err := t.fill(ctx); err != nil {
			return TailedEvent{}, false, err
		}
		if e, ok, err := t.pop(ctx); ok || err != nil || !wait {
			return e, ok, err
		}
		if err := ctx.Err(); err != nil {
			return TailedEvent{}, false, err
		}
		if err := t.read(ctx, t.parts, tailWait); err != nil {
			return TailedEvent{}, false, err
		}
	}
}

// fill reads from every partition whose next entry is unknown, and in the same round trip from
// those with few known entries: otherwise each of a thousand partitions would soon be read by
// itself.
func (t *Tail) fill(ctx context.Context) error {
	for {
		var empty, few []*tailed
		for _, p := range t.parts {
			switch {
			case p.dry:
			case len(p.entries) == 0:
				empty = append(empty, p)
			case len(p.entries) < tailPage/4:
				few = append(few, p)
			}
		}
		if len(empty) == 0 {
			return nil
		}
		wanted := append(empty, few...)
		if err := t.read(ctx, wanted[:t.pace.Next(len(wanted))], 0); err != nil {
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
	page := max(1, t.pace.Next(tailPage*len(parts))/len(parts))
	chunks, err := t.reader.Follow(ctx, logs, after, page, wait)
	if err != nil {
		return fmt.Errorf("read %d partitions: %w", len(parts), err)
	}
	read, bytes := 0, int64(0)
	defer func() { t.pace.Came(read, bytes) }()
	for _, c := range chunks {
		p := byLog[c.Key]
		had := len(p.entries)
		read, bytes = read+len(c.Entries), bytes+bytesOfAll(c.Entries)
		for _, e := range c.Entries {
			p.entries = append(p.entries, t.stock.put(e))
		}
		if had == 0 {
			t.arrived(p)
		}
		p.after = c.Entries[len(c.Entries)-1].ID
		p.dry = len(c.Entries) < page
	}
	return nil
}

// arrived adds a partition that has entries again.
func (t *Tail) arrived(p *tailed) {
	if len(p.entries) > 0 {
		heap.Push(&t.ready, p)
	}
}

// pop takes the entry with the lowest known ID.
func (t *Tail) pop(ctx context.Context) (TailedEvent, bool, error) {
	if len(t.ready) == 0 {
		return TailedEvent{}, false, nil
	}
	p := t.ready[0]
	e, err := t.stock.take(ctx, t.client, p.log, p.entries[0])
	if err != nil {
		return TailedEvent{}, false, err
	}
	if p.entries = p.entries[1:]; len(p.entries) > 0 {
		heap.Fix(&t.ready, 0)
	} else {
		heap.Pop(&t.ready)
	}
	return TailedEvent{p.number, e}, true, nil
}
