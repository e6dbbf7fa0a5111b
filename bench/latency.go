package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/bench/internal/proc"
	"github.com/runnel-go/runnel/bench/internal/stats"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// stampSize is the time in front of a payload: nanoseconds, by the clock that all
// processes of a machine share.
const stampSize = 8

// sendPaced appends entries one by one, at even intervals, to the partitions in turn, each with its
// time of sending. It has its own process: in that of the handlers its wake-ups would delay them.
func sendPaced(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	logs, payload := t.logs(), bytes.Repeat([]byte("x"), max(t.Size, stampSize))
	began, step := time.Now(), time.Second/time.Duration(t.Rate)
	for i := range t.Events {
		time.Sleep(time.Until(began.Add(time.Duration(i) * step)))
		binary.BigEndian.PutUint64(payload, uint64(time.Now().UnixNano()))
		err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: logs[i%len(logs)], Values: []any{payloadField, payload}}).Err()
		if err != nil {
			return nil, fmt.Errorf("send event %d: %w", i, err)
		}
	}
	return Result{"sent": float64(t.Events)}, nil
}

func stamped(payload []byte) (at time.Time, err error) {
	if len(payload) < stampSize {
		return at, errors.New("a payload without a time")
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(payload))), nil
}

// A stopwatch collects how long events took. add may be called concurrently.
type stopwatch struct {
	n     atomic.Int64
	waits []float64 // microseconds
}

func (s *stopwatch) add(payload []byte) error {
	at, err := stamped(payload)
	if err != nil {
		return err
	}
	if i := int(s.n.Add(1)) - 1; i < len(s.waits) {
		s.waits[i] = float64(time.Since(at).Nanoseconds()) / 1e3
	}
	return nil
}

// result is of what came after the first tenth, which warms up.
func (s *stopwatch) result() Result {
	waits := slices.Sorted(slices.Values(s.waits[len(s.waits)/10:]))
	return Result{
		"p50": stats.Quantile(waits, 0.5), "p99": stats.Quantile(waits, 0.99), "max": waits[len(waits)-1],
	}
}

// withSender has the task's events sent by a process of a role, and returns when the meter is full.
func (t Task) withSender(ctx context.Context, role string, m *meter) error {
	t.Role = role
	if _, err := runChild(ctx, t); err != nil {
		return err
	}
	return m.wait(ctx)
}

// awaitReady waits until an app that runs is ready.
func awaitReady(ctx context.Context, app *runnel.App) error {
	for app.Ready() != nil {
		if err := rest(ctx, time.Millisecond); err != nil {
			return errors.Join(app.Ready(), err)
		}
	}
	return nil
}

// runWithSender runs an app until it has handled what a process of a role sends to it once it is ready.
func runWithSender(ctx context.Context, app *runnel.App, t Task, role string, m *meter) error {
	return runUntil(ctx, app, func(ctx context.Context) error {
		if err := awaitReady(ctx, app); err != nil {
			return err
		}
		return t.withSender(ctx, role, m)
	})
}

// readWithSender reads by hand what a process of a role sends meanwhile.
func readWithSender(ctx context.Context, t Task, role string, m *meter, read func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return read(ctx) })
	g.Go(func() error { return t.withSender(ctx, role, m) })
	return g.Wait()
}

func runnelLatency(ctx context.Context, t Task) (Result, error) {
	app := newApp(t)
	defer app.Close()
	m, watch := newMeter(t.Events), &stopwatch{waits: make([]float64, t.Events)}
	t.stream(app).Process(t.Run, func(_ context.Context, events *runnel.Events[Order]) error {
		for e := range events.Raw() {
			if err := watch.add(e.Data()); err != nil {
				return err
			}
			m.add(1)
		}
		return nil
	}, processorOf(t, runnel.StartEnd))
	if err := runWithSender(ctx, app, t, "sender", m); err != nil {
		return nil, err
	}
	return watch.result(), forget(ctx, t)
}

func plainLatency(ctx context.Context, t Task, rdb *redis.Client) (Result, error) {
	if err := createGroups(ctx, rdb, t.logs(), t.Run, "$"); err != nil {
		return nil, err
	}
	watch := &stopwatch{waits: make([]float64, t.Events)}
	p := &plain{t: t, rdb: rdb, m: newMeter(t.Events), seen: func(data string) error {
		return watch.add(unsafe.Slice(unsafe.StringData(data), len(data)))
	}}
	if err := readWithSender(ctx, t, "sender", p.m, p.run); err != nil {
		return nil, err
	}
	return watch.result(), dropGroups(ctx, t, rdb)
}

const idleSettles = 3 * time.Second

func runnelIdle(ctx context.Context, t Task) (Result, error) {
	return t.idle(ctx, func(app *runnel.App) {
		t.stream(app).Process(t.Run, func(_ context.Context, events *runnel.Events[Order]) error {
			for range events.Raw() {
			}
			return nil
		}, nil)
	})
}

// idle measures a worker that has nothing to do, whose app is declared. Requests are what it writes to
// its connections: a pipeline of three are three, a script is one.
func (t Task) idle(ctx context.Context, declare func(*runnel.App)) (Result, error) {
	o, err := redis.ParseURL(t.URL)
	if err != nil {
		return nil, err
	}
	counter := redistest.CountingDialer(nil)
	o.Dialer = counter.Dial
	rdb := redis.NewClient(o)
	defer rdb.Close()
	app := newApp(t, func(o *runnel.Options) { o.Redis = rdb })
	defer app.Close()
	declare(app)
	result := Result{}
	err = runUntil(ctx, app, func(ctx context.Context) error {
		if err := errors.Join(awaitReady(ctx, app), rest(ctx, idleSettles)); err != nil {
			return err
		}
		requests, scripts, cpu, began := counter.Total(), counter.ByName()["EVALSHA"], proc.CPU(), time.Now()
		if err := rest(ctx, t.Length); err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		result["requests"] = float64(counter.Total()-requests) / took
		result["scripts"] = float64(counter.ByName()["EVALSHA"]-scripts) / took
		result["cpu"] = (proc.CPU() - cpu).Seconds() / took * 100
		result["memory"] = float64(proc.Memory()) / (1 << 10)
		return nil
	})
	return result, err
}
