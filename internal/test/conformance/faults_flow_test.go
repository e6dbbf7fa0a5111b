package conformance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
)

// A flow sends a parcel to every partition, round after round, so that a partition pauses only if
// its owner does. The seq of a parcel is its round.
type flow struct {
	app   *parcelApp
	log   *history.Log
	keys  []string
	round atomic.Int64 // the last one that was sent
	stop  func()
}

// startFlow sends until stop is called, or the test ends.
func startFlow(t testing.TB, app *parcelApp, h *history.Log, partitions int, pause time.Duration) *flow {
	f := &flow{app: app, log: h.As("producer"), keys: keysOf(partitions)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	f.stop = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for seq := int64(1); ctx.Err() == nil; seq++ {
			if f.send(ctx, seq) {
				f.round.Store(seq)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(f.stop)
	return f
}

// send sends one round. Failed records are sent again before any later one: the order of a key is
// the producer's order. It reports whether all are sent, which the end of ctx may prevent.
func (f *flow) send(ctx context.Context, seq int64) bool {
	var batch []runnel.Outgoing[parcel]
	for _, key := range f.keys {
		batch = append(batch, runnel.Outgoing[parcel]{Record: parcel{Key: key, Seq: seq}})
	}
	for len(batch) > 0 && ctx.Err() == nil {
		batch = f.sendOnce(batch)
	}
	return len(batch) == 0
}

func (f *flow) sendOnce(batch []runnel.Outgoing[parcel]) []runnel.Outgoing[parcel] {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	again, _ := f.app.sendNoted(ctx, f.log, batch)
	if again != nil {
		<-time.After(20 * time.Millisecond)
	}
	return again
}

// sendNoted sends a batch and records each outcome: sent, unknown, or refused. It returns the
// failed records and the error.
func (a *parcelApp) sendNoted(ctx context.Context, log *history.Log, batch []runnel.Outgoing[parcel]) (failed []runnel.Outgoing[parcel], err error) {
	sent, err := a.parcels.SendEvents(ctx, batch...)
	var se *runnel.SendError
	if err != nil && !errors.As(err, &se) {
		return batch, err // nothing was sent
	}
	failures := map[int]runnel.SendFailure{}
	if se != nil {
		for _, f := range se.Failed {
			failures[f.Index] = f
		}
	}
	for i, o := range batch {
		f, bad := failures[i]
		var noted error
		switch {
		case !bad:
			noted = log.Sent("parcels", sent[i].Partition, sent[i].ID, o.Record.Key, o.Record.Seq)
		case f.Unknown:
			noted = log.Unknown("parcels", o.Record.Key, o.Record.Seq)
		default:
			noted = log.Refused("parcels", o.Record.Key, o.Record.Seq)
		}
		if noted != nil {
			a.t.Error(noted)
		}
		if bad {
			failed = append(failed, o)
		}
	}
	return failed, err
}
