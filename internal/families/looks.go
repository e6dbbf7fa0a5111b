package families

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/worker"
)

// freshFor is how long one look at Redis serves further scrapes.
const freshFor = time.Second

// looks caches the last answer of Redis about the partitions that a worker owns.
type looks struct {
	app   *appview.View
	count int64

	mu sync.Mutex // held during requests to Redis, so that concurrent scrapes share an answer
	at time.Time
	of []*look
}

type look struct {
	stream, processor string
	numbers           []int
	partitions        []inspect.PartitionState
	totals            inspect.Totals
	stored            []storedRows // of its tables
}

// storedRows are the rows of a table in the owned partitions of a processor.
type storedRows struct {
	of    tableOf
	count int64
}

// owned returns a look at the owned partitions of each processor, in order. The partitions of all
// processors are read together.
func (l *looks) owned(ctx context.Context, processors []worker.ProcessorStats) ([]*look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < freshFor && slices.EqualFunc(l.of, processors, (*look).isOf) {
		return l.of, nil
	}
	client, err := l.app.Client()
	if err != nil {
		return nil, err
	}
	var places []store.Partition
	for _, p := range processors {
		for _, n := range p.Owned {
			places = append(places, client.Partition(p.Stream, p.Processor, n))
		}
	}
	seen, err := inspect.Places(ctx, client, places, l.count)
	if err != nil {
		return nil, err
	}
	l.of = nil
	for _, p := range processors {
		n, outboxes := len(p.Owned), map[int]int64(nil)
		if p.Atomic && client.UsesOutboxes() {
			if outboxes, err = inspect.Outboxes(ctx, client, places[:n], seen[:n]); err != nil {
				return nil, err
			}
		}
		stored, err := rowsOf(ctx, client, p)
		if err != nil {
			return nil, err
		}
		totals := inspect.Sum(seen[:n])
		totals.Outputs = inspect.Waiting(outboxes)
		l.of = append(l.of, &look{p.Stream, p.Processor, p.Owned, seen[:n:n], totals, stored})
		seen, places = seen[n:], places[n:]
	}
	l.at = time.Now()
	return l.of, nil
}

// rowsOf counts the rows of a processor's tables in its owned partitions. A table of which that cannot be told is left out.
func rowsOf(ctx context.Context, client *store.Client, p worker.ProcessorStats) (all []storedRows, err error) {
	for _, t := range tablesOf(&p) {
		var parts []store.Table
		for _, n := range p.Owned {
			parts = append(parts, client.Table(p.Stream, t.Name, n))
		}
		n, err := client.RowsOf(ctx, parts...)
		switch {
		case err == nil:
			all = append(all, storedRows{t, n})
		case !redisconn.IsReply(err):
			return nil, err
		}
	}
	return all, nil
}

func (l *look) isOf(p worker.ProcessorStats) bool {
	return l.stream == p.Stream && l.processor == p.Processor && slices.Equal(l.numbers, p.Owned)
}
