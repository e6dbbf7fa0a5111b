package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// producedLength is how long a partition may become, in both sides' way: Runnel's
	// Size and XADD's MAXLEN. No run sends that much.
	producedLength = 50_000
	// distinct is how many records a run sends over and over, for payloads of 100 bytes.
	distinct = 5_000
)

// runnelSend sends with Send, Count records at a time, from as many goroutines as Readers says.
func runnelSend(ctx context.Context, t Task) (Result, error) {
	records, err := orders(codecNamed(t.Codec), t.distinct(), t.Size)
	if err != nil {
		return nil, err
	}
	app := newApp(t)
	defer app.Close()
	stream := t.stream(app)
	return t.produce(ctx, func(ctx context.Context, from, to int) error {
		return stream.Send(ctx, records[from:to]...)
	})
}

// distinct is how many records the task sends over and over: a multiple of Count.
func (t Task) distinct() int {
	n := max(min(distinct, distinct*100/t.Size), t.Count)
	return n - n%t.Count
}

// produce calls send for batches of the distinct records until all events are sent,
// and measures it. Connections and scripts are made before.
func (t Task) produce(ctx context.Context, send func(ctx context.Context, from, to int) error) (Result, error) {
	if err := t.share(ctx, t.Readers*t.Count, send); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	first := markAt(0)
	if err := t.share(ctx, t.Events, send); err != nil {
		return nil, err
	}
	last := markAt(int64(t.Events))
	m := &meter{last: last}
	m.first.Store(&first)
	return m.result(), nil
}

// share has so many events sent by the goroutines of the task, each its part.
func (t Task) share(ctx context.Context, events int, send func(ctx context.Context, from, to int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	batches, records := events/t.Count, t.distinct()
	for i := range t.Readers {
		g.Go(func() error {
			for b := i; b < batches; b += t.Readers {
				from := b * t.Count % records
				if err := send(ctx, from, from+t.Count); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
