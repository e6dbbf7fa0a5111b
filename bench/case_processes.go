package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const processesAbout = "A backlog in 64 partitions and a handler that sleeps for 1 ms, in 1, 2 and 4 worker processes. Once the " +
	"workers share the partitions evenly they are watched for a while. At most 64 events can be in progress, so the " +
	"bar is held against the rate divided by 64 / (the mean time that the handlers have slept)."

const (
	processPartitions = 64
	// processWarmUp is how long workers run before they are watched.
	processWarmUp = 300 * time.Millisecond
)

func planProcesses(ctx context.Context, b *Bench) (*Plan, error) {
	t := Task{
		Stream: "slow", Codec: "msgpack", Partitions: processPartitions, Size: 100, Work: time.Millisecond,
		Events: b.scale(500_000, 300_000), Length: time.Duration(b.scale(2000, 500)) * time.Millisecond,
	}
	if err := fill(ctx, b.rdb, t); err != nil {
		return nil, err
	}
	p := &Plan{Columns: []Column{rateColumn, sleepColumn, {"share", "of the possible %", 100}}}
	for _, n := range []int{1, 2, 4} {
		name := fmt.Sprint(n, " processes")
		if n == 1 {
			name = "1 process"
		}
		p.Sides = append(p.Sides, Side{Name: name, Task: t, Run: func(ctx context.Context, t Task) (Result, error) {
			return watchWorkers(ctx, t, n)
		}})
		p.Claims = append(p.Claims, figure(name+", rate / possible", name, "share", "×", atLeast(0.95)))
	}
	return p, nil
}

// watchWorkers starts n workers and returns the rate of all together.
func watchWorkers(ctx context.Context, t Task, n int) (_ Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	defer cancel()
	var ws []*workerProcess
	defer func() {
		for _, w := range ws {
			w.stop()
		}
		err = errors.Join(err, forget(ctx, t))
	}()
	for range n {
		w, err := startWorker(ctx, t)
		if err != nil {
			return nil, err
		}
		ws = append(ws, w)
	}
	if err := errors.Join(awaitShares(ctx, ws, t.Partitions), rest(ctx, processWarmUp)); err != nil {
		return nil, err
	}
	from := time.Now().UnixNano()
	if err := rest(ctx, t.Length); err != nil {
		return nil, err
	}
	until := time.Now().UnixNano()
	rate, slept, count, last := 0.0, int64(0), int64(0), int64(0)
	for _, w := range ws {
		first, end := w.between(from, until)
		if end.At <= first.At || end.Count <= first.Count {
			return nil, errors.New("a worker has handled nothing")
		}
		rate += float64(end.Count-first.Count) / time.Duration(end.At-first.At).Seconds()
		slept, count, last = slept+end.Slept-first.Slept, count+end.Count-first.Count, last+end.Count
	}
	if last >= int64(t.Events)*9/10 {
		return nil, fmt.Errorf("the backlog of %d events is too short", t.Events)
	}
	sleep := time.Duration(slept / count)
	return Result{
		"rate": rate, "sleep": float64(sleep.Nanoseconds()) / 1e3,
		"share": rate * sleep.Seconds() / float64(t.Partitions),
	}, nil
}

// between returns the first and last report of the worker in a time.
func (w *workerProcess) between(from, until int64) (first, last Told) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.told {
		if t.At >= from && first.At == 0 {
			first = t
		}
		if t.At <= until {
			last = t
		}
	}
	return first, last
}
