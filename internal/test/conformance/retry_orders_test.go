package conformance_test

import (
	"context"
	"fmt"
	"slices"
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
)

// A poisoned run processes events of 100 keys, of which one may be poison: its
// first event fails each time.
type poisonedRun struct {
	order  runnel.RetryOrder
	poison bool

	others, poisoned atomic.Int64 // completed
	failures         atomic.Int64
	passed           atomic.Bool // an event of the poison key came before its first one was given up
	took             time.Duration
}

func (p *poisonedRun) run(t *testing.T, srv *redistest.Server, app string) {
	t.Helper()
	send, work := p.app(t, srv, app, "sender"), p.app(t, srv, app, "worker")
	defer send.Close()
	var out []parcel
	for seq := range poisonedEvents {
		for k := range poisonedKeys {
			out = append(out, parcel{Key: fmt.Sprint("key-", k), Seq: int64(seq)})
		}
	}
	if err := send.stream.Send(t.Context(), out...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- work.Run(ctx) }()
	await(t, "the other keys", time.Minute, func() bool { return p.others.Load() == (poisonedKeys-1)*poisonedEvents })
	p.took = time.Since(began)
	want := int64(poisonedEvents)
	if p.poison {
		want-- // a dead letter
	}
	await(t, "the poison key", time.Minute, func() bool { return p.poisoned.Load() == want && (!p.poison || p.failures.Load() == 3) })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	work.Close()
}

type poisonedApp struct {
	*runnel.App
	stream *runnel.Stream[parcel]
}

func (p *poisonedRun) app(t *testing.T, srv *redistest.Server, name, worker string) poisonedApp {
	a := runnel.New(name, &runnel.Options{RedisURL: srv.URL(), WorkerName: worker, Logger: new(logbook).logger()})
	s := runnel.NewStream(a, "parcels", parcelKey, &runnel.StreamOptions{Partitions: 4})
	if worker == "sender" {
		return poisonedApp{a, s}
	}
	s.Process("check", runnel.Each(func(ctx context.Context, e *runnel.Event, o parcel) error {
		select { // an iteration takes its time
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
		switch {
		case o.Key != poisonKey:
			p.others.Add(1)
			return nil
		case p.poison && o.Seq == 0:
			p.failures.Add(1)
			return errPoison
		case p.poison && p.failures.Load() < 3:
			p.passed.Store(true)
		}
		p.poisoned.Add(1)
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3, Order: p.order, MinBackoff: 150 * time.Millisecond, Jitter: -1}})
	return poisonedApp{a, s}
}

var errPoison = fmt.Errorf("poison")

// Of 100 keys one is poison. What waits for it is what the order says; with
// OrderKey and OrderNone the other keys hardly notice. The ratio of their time
// with and without the poison is for who reads it.
func TestOnePoisonKeyOfAHundred(t *testing.T) {
	srv := redistest.Start(t)
	for _, order := range []runnel.RetryOrder{runnel.OrderKey, runnel.OrderNone, runnel.OrderPartition} {
		var ratios []float64
		pairs := 1
		if order == runnel.OrderKey {
			pairs = 3
		}
		for pair := range pairs {
			pure, poisoned := &poisonedRun{order: order}, &poisonedRun{order: order, poison: true}
			pure.run(t, srv, fmt.Sprintf("pure-%v-%d", order, pair))
			poisoned.run(t, srv, fmt.Sprintf("poisoned-%v-%d", order, pair))
			ratios = append(ratios, poisoned.took.Seconds()/pure.took.Seconds())
			if n := poisoned.failures.Load(); n != 3 {
				t.Errorf("%v: the poison was attempted %d times", order, n)
			}
			if passed := poisoned.passed.Load(); passed != (order == runnel.OrderNone) {
				t.Errorf("%v: events of its key passed the poison: %v", order, passed)
			}
			t.Logf("%v: the other 99 keys took %v without the poison, %v with it", order, pure.took, poisoned.took)
		}
		slices.Sort(ratios)
		t.Logf("%v: ratios %.2f, median %.2f", order, ratios, ratios[pairs/2])
	}
}
