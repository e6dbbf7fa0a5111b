package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/monotime"
	"github.com/runnel-go/runnel/internal/store"
)

const (
	// benchPace is the time between two events whose latency is measured.
	benchPace = 5 * time.Millisecond
	// benchExpiry is how long locks outlive a bench that crashes.
	benchExpiry = 2 * time.Second
	// benchPatience is how long a bench waits for its worker, and tries to clean up.
	benchPatience = 15 * time.Second
)

// A bench is an app of its own that loads a server.
type bench struct {
	benched
	app    *runnel.App
	client *store.Client
	admin  *admin.Client
	load   *runnel.Stream[benchRecord] // is sent as fast as possible, and drained
	paced  *runnel.Stream[benchRecord] // is sent slowly, and handled at once
	most   int64                       // events that may be sent, in all stages
	room   atomic.Int64                // events that the stage may still send
	loaded atomic.Int64                // events of load

	begun   time.Time // zero of the times in records
	drained tally     // of load
	ways    durations // of the paced events, from send to handler
}

type benchRecord struct {
	Key  string
	Data []byte
	At   time.Duration // when it was sent
}

func newBench(s *session, what benched) (*bench, error) {
	opened := s.client.Opened()
	b := &bench{benched: what, begun: time.Now(), most: int64(benchBytes / (what.Size + benchOverhead))}
	b.app = runnel.New(what.App, &runnel.Options{
		Redis: opened.Redis, RedisURL: opened.URL, Logger: slog.New(slog.DiscardHandler), KeyLayout: runnel.KeyLayout(s.client.Keys().Layout),
		Stream:    runnel.StreamOptions{Partitions: what.Partitions, MaxLen: b.most + 1, Overflow: runnel.Reject, Codec: codec.MsgPack},
		Processor: runnel.ProcessorOptions{OnError: runnel.Halt, Lease: benchExpiry, Grace: time.Second, JoinDelay: time.Nanosecond},
	})
	key := func(r benchRecord) string { return r.Key }
	b.load = runnel.NewStream(b.app, "load", key, nil)
	b.paced = runnel.NewStream(b.app, "paced", key, nil)
	b.load.Process("drain", b.drain, nil)
	b.paced.Process("handle", b.handle, nil)
	var err error
	b.admin = admin.New(b.app)
	b.client, err = appview.Of(b.app).Client()
	return b, err
}

// run measures one stage after the other, for about duration. It ends early, with an error, when ctx
// ends.
func (b *bench) run(ctx context.Context, duration time.Duration) ([]measure, error) {
	var out []measure
	for _, st := range []struct {
		name  string
		share time.Duration // of the whole, in tenths
		room  int64         // of the events that may be sent, in tenths
		do    benchStage
	}{
		{stagePing, 1, 0, b.ping}, {stageSingle, 2, 2, b.sending(1)}, {stageLatency, 2, 1, b.latency}, {stageBatches, 2, 7, b.sending(b.Batch)}, {stageDrain, 3, 0, b.drainAll},
	} {
		b.room.Store(b.most * st.room / 10)
		m, err := b.stage(ctx, st.name, duration*st.share/10, st.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// A benchStage measures for some time.
type benchStage func(ctx context.Context, lasts time.Duration, m *measure) error

// stage runs a stage and adds the CPU time that the server used.
func (b *bench) stage(ctx context.Context, name string, lasts time.Duration, do benchStage) (measure, error) {
	m := measure{Name: name}
	before, err := inspect.Server(ctx, b.client)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := do(ctx, lasts, &m); err != nil {
		return m, err
	}
	took := time.Since(began)
	after, err := inspect.Server(ctx, b.client)
	if err != nil {
		return m, err
	}
	if !before.CPUUnknown && !after.CPUUnknown {
		share := (after.CPU - before.CPU).Seconds() / took.Seconds()
		m.RedisCPU = &share
	}
	if m.Took > 0 {
		m.Rate = float64(m.Events) / m.Took * 1000
	}
	return m, ctx.Err()
}

// remove deletes everything of the bench in Redis. It waits for the expiry of locks that a worker
// could not release.
func (b *bench) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), benchPatience)
	defer cancel()
	err := b.removeAll(ctx)
	for ; err != nil && ctx.Err() == nil; err = b.removeAll(ctx) {
		monotime.Sleep(ctx, benchExpiry/4)
	}
	return errors.Join(err, b.app.Close())
}

func (b *bench) removeAll(ctx context.Context) error {
	streams, err := b.client.Streams(ctx)
	if err != nil {
		return err
	}
	for _, name := range streams {
		if _, err := b.admin.RemoveStream(ctx, name, nil); err != nil {
			return err
		}
	}
	return nil
}
