package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// journalEvery is how long changes of ownership gather before they are logged.
const journalEvery = 100 * time.Millisecond

// A journal logs which partitions were gained and released, many in one line:
// a start with 1 024 of them is one event to an operator, not 1 024.
type journal struct {
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	changes []change
}

type change struct {
	what      string
	partition int
}

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, wake: make(chan struct{}, 1)}
}

func (j *journal) gain(partition int)    { j.note(change{"partitions gained", partition}) }
func (j *journal) release(partition int) { j.note(change{"partitions released", partition}) }

func (j *journal) note(c change) {
	j.mu.Lock()
	j.changes = append(j.changes, c)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run logs until ctx ends, and what is left then.
func (j *journal) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			j.write()
			return
		case <-j.wake:
		}
		timer := time.NewTimer(journalEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		j.write()
	}
}

// write logs a line for each run of changes of one kind, in their order.
func (j *journal) write() {
	j.mu.Lock()
	changes := j.changes
	j.changes = nil
	j.mu.Unlock()
	for len(changes) > 0 {
		what := changes[0].what
		var partitions []int
		for len(changes) > 0 && changes[0].what == what {
			partitions = append(partitions, changes[0].partition)
			changes = changes[1:]
		}
		slices.Sort(partitions)
		j.log.Info(what, "partitions", partitions)
	}
}
