package schedule

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
		end: make(chan struct{}), done: make(chan struct{}),
	}
}

// Log returns a writer whose lines `schedule logs` shows. It never blocks: what Redis does not take in time is dropped, and counted. It may
// be used concurrently, until the function returns.
func (r *Run) Log() io.Writer {
	if r.log == nil {
		return io.Discard
	}
	return r.log.from("log")
}

// from returns a writer of lines that come from somewhere.
func (l *runLog) from(where string) *lineWriter { return &lineWriter{log: l, where: where} }

// A lineWriter makes lines of what is written.
type lineWriter struct {
	log   *runLog
	where string

	mu   sync.Mutex
	rest []byte
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		n, end := bytes.IndexByte(w.rest, '\n'), 1
		if n < 0 || n > logLine {
			n, end = logLine, 0
		}
		if n+end > len(w.rest) {
			break
		}
		w.log.add(w.where, string(bytes.TrimSuffix(w.rest[:n], []byte("\r"))))
		w.rest = w.rest[n+end:]
	}
	if w.where == "log" { // each call of Run.Log makes a writer
		w.last()
	}
	return len(p), nil
}

// flush makes a line of what has no end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last()
}

func (w *lineWriter) last() {
	if len(w.rest) > 0 {
		w.log.add(w.where, string(w.rest))
		w.rest = nil
	}
}

func (l *runLog) add(where, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes+len(text) > logPending {
		l.dropped++
		return
	}
	l.bytes += len(text)
	l.lines = append(l.lines, ischedule.Line{Attempt: l.attempt, From: where, At: time.Now(), Text: text})
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
		timer := time.NewTimer(logEvery)
		select {
		case <-timer.C:
		case <-l.end:
			ended = true
		}
		timer.Stop()
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
	begun := l.begun
	l.begun = true // what is written later is dropped
	l.mu.Unlock()
	if begun {
		close(l.end)
		<-l.done
	}
}
