package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/worker"
)

// freshFor is how long a look at Redis serves further scrapes.
const freshFor = time.Second

// looks are what Redis said of the partitions of each processor last.
type looks struct {
	reg   *worker.Registry
	count int64

	mu sync.Mutex // held while Redis is asked: scrapes at the same time share an answer
	of map[[2]string]*look
}

// A look is what Redis said of some partitions of a processor.
type look struct {
	at         time.Time
	numbers    []int
	partitions []inspect.PartitionState
	totals     inspect.Totals
}

func newLooks(reg *worker.Registry, count int64) *looks {
	return &looks{reg: reg, count: count, of: map[[2]string]*look{}}
}

func (l *looks) at(ctx context.Context, stream, processor string, numbers []int) (*look, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{stream, processor}
	if last := l.of[key]; last != nil && time.Since(last.at) < freshFor && slices.Equal(last.numbers, numbers) {
		return last, nil
	}
	client, err := l.reg.Client()
	if err != nil {
		return nil, err
	}
	parts, err := inspect.Partitions(ctx, client, stream, processor, numbers, l.count)
	if err != nil {
		return nil, err
	}
	l.of[key] = &look{at: time.Now(), numbers: numbers, partitions: parts, totals: inspect.Sum(parts)}
	return l.of[key], nil
}
