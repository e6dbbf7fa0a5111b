package conformance_test

import (
	"strings"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A logbook keeps what a worker logs from info up.
type logbook struct{ redistest.Log }

func (l *logbook) count() int {
	return strings.Count(l.String(), "\n")
}

// line returns the first line that contains all these texts, "" if there is none.
func (l *logbook) line(texts ...string) string {
	for line := range strings.Lines(l.String()) {
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
