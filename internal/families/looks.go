package families

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
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
	l.at, l.of = time.Now(), nil
	for _, p := range processors {
		n := len(p.Owned)
		l.of = append(l.of, &look{p.Stream, p.Processor, p.Owned, seen[:n:n], inspect.Sum(seen[:n])})
		seen = seen[n:]
	}
	return l.of, nil
}

func (l *look) isOf(p worker.ProcessorStats) bool {
	return l.stream == p.Stream && l.processor == p.Processor && slices.Equal(l.numbers, p.Owned)
}
