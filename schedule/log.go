package schedule

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

const (
	// logEvery is how long lines wait for others.
	logEvery = 200 * time.Millisecond
	// logPending is how many bytes of lines wait at most: more are dropped, and counted.
	logPending = 64 << 10
	// logLine is how long a line is at most; the rest of it is another one.
	logLine = 8 << 10
	// logPatience is how long the last lines of a run are tried to be stored.
	logPatience = 2 * time.Second
)

// A runLog is the log of a run: what is written never waits for Redis.
type runLog struct {
	s         *Scheduler
	partition int
	place     ischedule.Place
	attempt   string

	mu      sync.Mutex
	rest    map[string][]byte // lines without an end, by where they come from
	lines   []ischedule.Line
	bytes   int
	dropped int
	begun   bool
	end     chan struct{}
	done    chan struct{}
}

func newRunLog(s *Scheduler, r *run) *runLog {
	return &runLog{
		s: s, partition: r.partition, place: ischedule.Place{Task: r.Task, Time: r.Time}, attempt: fmt.Sprintf("%d.%d", r.Generation, r.Attempt),
		rest: map[string][]byte{}, end: make(chan struct{}), done: make(chan struct{}),
	}
}

// Log returns a writer whose lines `schedule logs` shows, the last one perhaps without an end. It never blocks: what Redis does not take
// in time is dropped, and counted. It may be used concurrently, until the function returns.
func (r *Run) Log() io.Writer {
	if r.log == nil {
		return io.Discard
	}
	return lineWriter{r.log, "log"}
}

// A lineWriter makes lines of what is written.
type lineWriter struct {
	*runLog
	from string
}

// Write never fails.
func (w lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := append(w.rest[w.from], p...)
	for {
		n, end := bytes.IndexByte(rest[:min(len(rest), logLine+1)], '\n'), 1
		if n < 0 {
			n, end = logLine, 0
		}
		if n+end > len(rest) {
			break
		}
		w.add(w.from, rest[:n])
		rest = rest[n+end:]
	}
	w.rest[w.from] = bytes.Clone(rest) // which does not keep all of p
	return len(p), nil
}

// add adds a line. The log is locked.
func (l *runLog) add(from string, line []byte) {
	if l.bytes+len(line) > logPending {
		l.dropped++
		return
	}
	l.bytes += len(line)
	l.lines = append(l.lines, ischedule.Line{Attempt: l.attempt, From: from, At: time.Now(), Text: string(bytes.TrimSuffix(line, []byte("\r")))})
	if !l.begun {
		l.begun = true
		go l.store()
	}
}

// take returns the lines that wait, with one that counts what was dropped.
func (l *runLog) take() []ischedule.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	if l.dropped > 0 {
		lines = append(lines, ischedule.Line{Attempt: l.attempt, From: "log", At: time.Now(), Text: fmt.Sprintf("(%d lines were dropped)", l.dropped)})
	}
	l.lines, l.bytes, l.dropped = nil, 0, 0
	return lines
}

// store stores lines until the run ends.
func (l *runLog) store() {
	defer close(l.done)
	for ended := false; !ended; {
		select {
		case <-time.After(logEvery):
		case <-l.end:
			ended = true
		}
		ctx, cancel := context.WithTimeout(context.Background(), logPatience)
		for some := range slices.Chunk(l.take(), ischedule.PerCall) {
			if err := l.s.calls.Log(ctx, l.partition, l.place, some); err != nil {
				l.mu.Lock()
				l.dropped += len(some)
				l.mu.Unlock()
			}
		}
		cancel()
	}
}

// close stores the last lines.
func (l *runLog) close() {
	l.mu.Lock()
	for _, from := range slices.Sorted(maps.Keys(l.rest)) {
		if rest := l.rest[from]; len(rest) > 0 {
			l.add(from, rest)
		}
	}
	begun := l.begun
	l.begun = true // what is written later is dropped
	l.mu.Unlock()
	if begun {
		close(l.end)
		<-l.done
	}
}
