package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-go/runnel/internal/help"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/rebalance"
)

// journalEvery is how long entries gather before they are logged.
const journalEvery = 100 * time.Millisecond

// A logBatch logs what happens to partitions, one line for all with the same outcome: to an
// operator a start with 1 024 partitions is one event.
type logBatch struct {
	log  *slog.Logger
	wake signal

	mu      sync.Mutex
	entries []entry
}

type entry struct {
	level     slog.Level
	what      string
	partition int
	err       error
	since     int64         // by monotime, when the function began; 0 for none
	grace     time.Duration // how long the worker waits, 0 if it does not
}

const (
	gained      = "partitions gained"
	released    = "partitions released"
	waiting     = "waiting for functions"
	abandoned   = "partitions abandoned"
	lost        = "partitions lost"
	regained    = "consumer groups gone, taking over again"
	forgotten   = "deliveries forgotten, taking over again"
	unassigned  = "pending events gone, taking over again"
	gone        = "events may be gone"
	paused      = "partitions paused"
	resumed     = "partitions resumed"
	notReleased = "locks not released"
	notTaken    = "partitions cannot be taken over"
)

// helps has the help for messages that an operator can act on.
var helps = map[string]string{
	abandoned: help.FunctionStuck, lost: help.PartitionsLost, gone: help.EventsMayBeGone, notTaken: help.NotTakenOver,
	regained: help.TakenOverAgain, forgotten: help.TakenOverAgain, unassigned: help.TakenOverAgain,
}

func newLogBatch(log *slog.Logger) *logBatch {
	return &logBatch{log: log, wake: newSignal()}
}

// note adds an entry; err may be nil.
func (j *logBatch) note(level slog.Level, what string, partition int, err error) {
	j.add(entry{level: level, what: what, partition: partition, err: err})
}

func (j *logBatch) add(e entry) {
	j.mu.Lock()
	j.entries = append(j.entries, e)
	j.mu.Unlock()
	j.wake.set()
}

// run logs until ctx ends, and then the remaining entries.
func (j *logBatch) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			j.write()
			return
		case <-j.wake:
		}
		monotime.Sleep(ctx, journalEvery)
		j.write()
	}
}

// write logs a line for each run of entries of one kind, in their order, with
// the error of the first, and the longest of their times.
func (j *logBatch) write() {
	j.mu.Lock()
	entries := j.entries
	j.entries = nil
	j.mu.Unlock()
	for len(entries) > 0 {
		first, since := entries[0], entries[0].since
		var partitions []int
		for len(entries) > 0 && entries[0].what == first.what {
			partitions, since = append(partitions, entries[0].partition), min(since, entries[0].since)
			entries = entries[1:]
		}
		attrs := []slog.Attr{slog.String("partitions", rebalance.Ranges(partitions))}
		if since != 0 {
			attrs = append(attrs, slog.Duration("after", time.Duration(monotime.Now()-since).Round(time.Millisecond)))
		}
		if first.grace != 0 {
			attrs = append(attrs, slog.Duration("grace", first.grace))
		}
		if first.err != nil {
			attrs = append(attrs, slog.Any("err", first.err))
		}
		if h := helps[first.what]; h != "" {
			attrs = append(attrs, slog.String("help", h))
		}
		j.log.LogAttrs(context.Background(), first.level, first.what, attrs...)
	}
}
