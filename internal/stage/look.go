package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/store"
)

// A Waiting is a queue of visits.
type Waiting struct {
	Stage string
	Visits,
	Due int64 // of these
	Late time.Duration // since the first has been due
	Dead int64
}

// A Look is what a partition has.
type Look struct {
	Partition int

	Entities, Running, Failing int64
	Queues                     []Waiting // Touch, then the stages
	Err                        error
}

// Look looks at partitions; it changes nothing.
func (s *Set) Look(ctx context.Context, looks ...*Look) {
	calls := make([]*store.ScriptCall, len(looks))
	for i, l := range looks {
		calls[i] = &store.ScriptCall{Script: lookScript, Keys: s.all(l.Partition)}
	}
	s.run(ctx, calls, func(i int, texts []string, err error) { looks[i].Err = looks[i].read(s.stages, texts, err) })
}

func (l *Look) read(stages, texts []string, err error) error {
	if err == nil && len(texts) != 6+4*len(stages) {
		err = fmt.Errorf("unexpected reply of %d texts", len(texts))
	}
	next := func() (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(texts[0], 10, 64)
			texts = texts[1:]
		}
		return n
	}
	l.Entities, l.Running, l.Failing = next(), next(), next()
	for _, stage := range append([]string{Touch}, stages...) {
		w := Waiting{Stage: stage, Visits: next(), Due: next(), Late: time.Duration(next()) * time.Millisecond}
		if stage != Touch {
			w.Dead = next()
		}
		l.Queues = append(l.Queues, w)
	}
	return err
}
