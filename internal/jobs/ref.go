package jobs

import (
	"fmt"
	"strings"
)

// A Source is a trigger or a task of a job: what can end at a logical time.
type Source struct {
	Job, Name string
	Trigger   bool
}

const triggerKind, taskKind = "trigger", "task"

// kinds of sources, by whether they are triggers.
var kinds = map[bool]string{true: triggerKind, false: taskKind}

// String returns JOB/trigger/NAME or JOB/task/NAME.
func (s Source) String() string { return s.Job + "/" + kinds[s.Trigger] + "/" + s.Name }

// ParseSource is the inverse of String.
func ParseSource(text string) (s Source, ok bool) {
	words := append(strings.Split(text, "/"), "", "") // three of them at least
	s = Source{Job: words[0], Name: words[2], Trigger: words[1] == triggerKind}
	return s, s.String() == text
}

// A Ref is a source as a task names it.
type Ref struct {
	Source
	Ended bool // its end counts, however it ended
}

// ParseRef parses what a task of a job waits for: trigger/NAME, task/NAME, or JOB/task/NAME of another job; with "?" behind, its
// end counts, however it ended.
func ParseRef(job, text string) (Ref, error) {
	words, ended := strings.CutSuffix(text, "?")
	if strings.Count(words, "/") == 1 {
		words = job + "/" + words
	}
	s, ok := ParseSource(words)
	switch {
	case !ok:
		return Ref{}, fmt.Errorf("%q is none of trigger/NAME, task/NAME and JOB/task/NAME", text)
	case !nameOK(s.Name) || s.Job != job && !nameOK(s.Job):
		return Ref{}, fmt.Errorf("%q: %s", text, nameRule)
	case s.Trigger && s.Job != job:
		return Ref{}, fmt.Errorf("%q is a trigger of another job: wait for a task of that, which may be a join", text)
	case s.Trigger && ended:
		return Ref{}, fmt.Errorf("%q: a trigger never fails", text)
	}
	return Ref{s, ended}, nil
}
