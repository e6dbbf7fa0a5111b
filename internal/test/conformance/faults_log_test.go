package conformance_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// A logbook keeps what a worker logs from info up. Its methods may be called
// concurrently.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// count is the number of lines so far.
func (l *logbook) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.buf.Bytes(), []byte("\n"))
}

// line returns the first line with all these texts in it, "" if there is none.
func (l *logbook) line(texts ...string) string {
	for line := range strings.Lines(l.text()) {
		if containsAll(line, texts...) {
			return line
		}
	}
	return ""
}

func containsAll(s string, texts ...string) bool {
	for _, text := range texts {
		if !strings.Contains(s, text) {
			return false
		}
	}
	return true
}
