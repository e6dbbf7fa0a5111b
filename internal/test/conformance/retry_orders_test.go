package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const (
	poisonedKeys   = 100
	poisonedEvents = 40 // of each key
	poisonKey      = "key-13"
	poisonAttempts = 3
)

var errPoison = errors.New("poison")

// A poisonedRun processes events of 100 keys. The first event of one key always fails.
type poisonedRun struct {
	others, poisoned atomic.Int64 // completed
	failures         atomic.Int64
	passed           atomic.Bool // an event of the poison key came before its first one was given up
}

func (p *poisonedRun) handle(ctx context.Context, _ *runnel.Event, o parcel) error {
	select { // an iteration takes its time
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond):
	}
	switch {
	case o.Key != poisonKey:
		p.others.Add(1)
		return nil
	case o.Seq == 0:
		p.failures.Add(1)
		return errPoison
	case p.failures.Load() < poisonAttempts:
		p.passed.Store(true)
	}
	p.poisoned.Add(1)
	return nil
}

// Of 100 keys one is poison. Only with OrderNone do its own later events pass; events of other keys
// are always processed.
func TestOnePoisonKeyOfAHundred(t *testing.T) {
	for _, order := range []runnel.RetryOrder{runnel.OrderKey, runnel.OrderNone, runnel.OrderPartition} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			srv, p := redistest.Start(t), &poisonedRun{}
			a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { o.Stream.Partitions = 4 })
			a.parcels.Process("check", runnel.Each(p.handle), &runnel.ProcessorOptions{
				Retry: &runnel.Retry{Max: poisonAttempts, Order: order, MinBackoff: 150 * time.Millisecond, Jitter: -1},
			})
			var all []parcel
			for seq := range int64(poisonedEvents) {
				for k := range poisonedKeys {
					all = append(all, parcel{Key: fmt.Sprint("key-", k), Seq: seq})
				}
			}
			a.send(all...)
			a.run()
			await(t, "the other keys", time.Minute, func() bool { return p.others.Load() == (poisonedKeys-1)*poisonedEvents })
			await(t, "the poison key", time.Minute, func() bool { return p.poisoned.Load() == poisonedEvents-1 && p.failures.Load() >= poisonAttempts })
			a.stop()
			if n := p.failures.Load(); n != poisonAttempts {
				t.Errorf("the poison was attempted %d times", n)
			}
			if passed := p.passed.Load(); passed != (order == runnel.OrderNone) {
				t.Errorf("events of its key passed the poison: %v", passed)
			}
		})
	}
}
