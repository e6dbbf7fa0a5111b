package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A Count is how many visits a stage has, or Touch.
type Count struct {
	Stage string
	Waiting,
	Due, // of these
	Running,
	Failing, // that failed, and are not dead; of more than about 1000 in a partition, an estimate
	Dead int64
	Late time.Duration // since the first has been due
}

// A Look is what a partition has.
type Look struct {
	Partition int

	Entities int64
	Failures int64   // dead ones too
	Slowed   int64   // entities that stages have changed too often
	Counts   []Count // Touch, then the stages
	Err      error
}

// Look looks at partitions; it changes nothing.
func (s *Set) Look(ctx context.Context, looks ...*Look) {
	names := []any{Touch}
	for _, stage := range s.stages {
		names = append(names, stage)
	}
	calls := make([]*store.ScriptCall, len(looks))
	for i, l := range looks {
		calls[i] = &store.ScriptCall{Script: lookScript, Keys: s.all(l.Partition), Args: names}
	}
	s.run(ctx, calls, func(i int, texts []string, err error) { looks[i].Err = looks[i].read(s.stages, texts, err) })
}

func (l *Look) read(stages, texts []string, err error) error {
	if err == nil && len(texts) != 9+6*len(stages) {
		err = fmt.Errorf("unexpected reply of %d texts", len(texts))
	}
	next := func() (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(texts[0], 10, 64)
			texts = texts[1:]
		}
		return n
	}
	l.Entities, l.Failures, l.Slowed = next(), next(), next()
	for _, stage := range append([]string{Touch}, stages...) {
		c := Count{Stage: stage, Waiting: next(), Due: next(), Late: time.Duration(next()) * time.Millisecond}
		c.Running, c.Failing, c.Dead = next(), next(), next()
		l.Counts = append(l.Counts, c)
	}
	return err
}

// ForgetPage forgets visits and failures of a stage in a partition, about 1000 at a time, and returns how
// many visits waited. cursor is "0" at first, and again at the end. What runs ends as Gone. It may be
// repeated; an owner that still asks the stage's queue finds it empty.
func (s *Set) ForgetPage(ctx context.Context, n int, stage, cursor string) (next string, visits int64, err error) {
	c := &store.ScriptCall{
		Script: forgetScript, Args: []any{stage, cursor},
		Keys: []string{s.queue(n, stage), s.dead(n, stage), s.key("visitrun", n, ""), s.key("visitfail", n, "")},
	}
	return s.page(ctx, c)
}
