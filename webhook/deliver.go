package webhook

import (
	"context"
	"errors"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/worker"
)

// hintsAtOnce is how many hints are looked at together.
const hintsAtOnce = 256

// process is the owner of a delivery partition for one ownership. The events are hints: subscribers that have changed.
func (b *Bus) process(ctx context.Context, events *runnel.Events[struct{ Sub string }]) error {
	if err := b.begin(); err != nil {
		return err
	}
	o := newOwner(ctx, b, worker.OwnershipOf(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.run()
	}()
	for batch := range events.Take(hintsAtOnce, 0).Raw() {
		var names []string
		for _, e := range batch {
			names = append(names, e.Fields()["sub"])
		}
		o.mail.post(func() { o.reload(names...) })
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	// What a lost ownership still does is fenced, or ends with its lease. It may wait for a server that does not answer, for
	// longer than the worker would wait for this function.
	if !errors.Is(context.Cause(ctx), runnel.ErrLost) {
		<-ended
	}
	return nil
}
