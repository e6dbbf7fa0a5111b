package webhook

import (
	"context"
	"sync"

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
	var owning sync.WaitGroup
	owning.Go(o.run)
	for batch := range events.Take(hintsAtOnce, 0).Raw() {
		var names []string
		for _, e := range batch {
			names = append(names, e.Fields()["sub"])
		}
		o.mail.post(func() { o.reload(names...) })
	}
	owning.Wait()
	return nil
}
