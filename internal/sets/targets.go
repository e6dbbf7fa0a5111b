package sets

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/stage"
	"github.com/runnel-go/runnel/internal/store"
)

// targets are the stages of sets.
func targets(ctx context.Context, c *store.Client, owner string) (out []extension.Target, err error) {
	all, err := load(ctx, c, owner)
	for _, s := range all {
		for _, name := range s.meta.Parts {
			out = append(out, extension.Target{
				Owner: s.name, Part: name, Processor: stage.Processor, Noun: "visit",
				Parked: &failed{s, name, false}, Dead: &failed{s, name, true},
			})
		}
	}
	return out, err
}

// failed are the failed visits of a stage: those that wait for another attempt, or the dead ones.
type failed struct {
	*set
	stage string
	dead  bool
}

// List returns failures partition by partition.
func (f *failed) List(ctx context.Context, by extension.Filter) iter.Seq2[extension.Failure, error] {
	return by.Of(func(yield func(extension.Failure, error) bool) {
		for n := range f.meta.Partitions {
			more := true
			err := f.calls.Failed(ctx, n, f.stage, func(one stage.VisitOf) bool {
				if (one.Died != 0) == f.dead {
					more = yield(f.failure(n, &one), nil)
				}
				return more
			})
			if err != nil {
				yield(extension.Failure{}, fmt.Errorf("set %s partition %d: %w", f.name, n, err))
			}
			if err != nil || !more {
				return
			}
		}
	})
}

func (f *failed) failure(n int, one *stage.VisitOf) extension.Failure {
	why := one.Failure
	out := extension.Failure{
		Partition: n, ID: one.ID, Key: one.ID, State: extension.Waiting, Reason: why.Reason, Attempts: why.Attempts, Error: why.Error, Epoch: why.Epoch,
		At: moment(one.Due), First: moment(why.First), Last: moment(why.Last), Died: moment(one.Died),
	}
	if out.At != nil {
		out.In = max(time.Until(*out.At).Milliseconds(), 0)
	}
	switch {
	case one.Running:
		out.State = extension.Running
	case f.dead:
		out.State = extension.Dead
	case out.At == nil || out.In == 0:
		out.State = extension.Due
	}
	return out
}

// Retry has visits run now; dead ones begin with attempt 1.
func (f *failed) Retry(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	if f.dead {
		return f.mend(ctx, stage.MendRetry, of)
	}
	return f.mend(ctx, stage.MendNow, of)
}

// Drop gives visits up.
func (f *failed) Drop(ctx context.Context, of []extension.Failure) ([]extension.Failure, error) {
	if f.dead {
		return f.mend(ctx, stage.MendBury, of)
	}
	return f.mend(ctx, stage.MendDrop, of)
}

func (f *failed) mend(ctx context.Context, what string, of []extension.Failure) (done []extension.Failure, err error) {
	for len(of) > 0 {
		n := 1
		for n < len(of) && n < 128 && of[n].Partition == of[0].Partition {
			n++
		}
		some := of[:n]
		of = of[n:]
		var ids []string
		for _, one := range some {
			ids = append(ids, one.ID)
		}
		did, err := f.calls.Mend(ctx, some[0].Partition, f.stage, what, ids...)
		if err != nil {
			return done, fmt.Errorf("set %s partition %d: %w", f.name, some[0].Partition, err)
		}
		for i, changed := range did {
			if changed {
				done = append(done, some[i])
			}
		}
	}
	return done, nil
}
