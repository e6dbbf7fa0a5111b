package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-go/runnel/bench/internal/stats"
)

const gapsAbout = "Two workers with default settings share 16 partitions, each of which gets an event every 10 ms from another " +
	"process. Then one of them is killed (kill -9), or told to stop as by SIGTERM, or a third one joins. " +
	"The figure is the longest time that passed in any partition between two handled events, from just before that on. " +
	"A killed worker's partitions are free when its lease of 10 s has expired."

const (
	gapRate     = 100 // events per second and partition
	gapSettles  = time.Second
	gapWatches  = time.Second
	gapRounds   = 3
	gapLongest  = 40 * time.Second // that is waited for a takeover
	gapOverlaps = 50 * time.Millisecond
)

func planGaps(_ context.Context, b *Bench) (*Plan, error) {
	t := Task{
		Stream: "steady", Codec: "msgpack", Partitions: drainPartitions, Size: 100, Each: true,
		Rate:   gapRate * drainPartitions,
		Events: gapRate * drainPartitions * int(gapLongest/time.Second),
	}
	p := &Plan{Rounds: b.scale(gapRounds, 1), Columns: []Column{{"gap", "longest pause ms", 1}}}
	for _, f := range []struct {
		name string
		do   func(*duel, context.Context) error
	}{
		{"kill -9", ending((*workerProcess).kill)},
		{"clean stop", ending((*workerProcess).stop)},
		{"third worker joins", (*duel).add},
	} {
		p.Sides = append(p.Sides, Side{Name: f.name, Task: t, Run: func(ctx context.Context, t Task) (Result, error) {
			gap, err := longestPause(ctx, t, f.do)
			return Result{"gap": float64(gap.Microseconds()) / 1e3}, err
		}})
		p.Claims = append(p.Claims, figure("longest pause, "+f.name, f.name, "gap", "ms", stats.Bar{}))
	}
	return p, nil
}

// A duel is workers that share partitions under a steady flow of events.
type duel struct {
	t   Task
	ws  []*workerProcess // those that should be there
	all []*workerProcess
}

// longestPause returns the longest pause of a duel in which something happens.
func longestPause(ctx context.Context, t Task, happens func(*duel, context.Context) error) (gap time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, gapLongest)
	defer cancel()
	d := &duel{t: t}
	defer func() {
		for _, w := range d.all {
			w.kill()
		}
	}()
	for range 2 {
		if err := d.add(ctx); err != nil {
			return 0, err
		}
	}
	flow, stopFlow := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() {
		t.Role = "sender"
		_, err := runChild(flow, t)
		sent <- err
	}()
	gap, err = d.measure(ctx, happens)
	early := len(sent) > 0
	stopFlow()
	if sendErr := <-sent; early {
		err = errors.Join(err, fmt.Errorf("the flow ended: %w", sendErr))
	}
	return gap, err
}

func (d *duel) measure(ctx context.Context, happens func(*duel, context.Context) error) (time.Duration, error) {
	if err := errors.Join(awaitShares(ctx, d.ws, d.t.Partitions), rest(ctx, gapSettles)); err != nil {
		return 0, err
	}
	from := time.Now().Add(-gapOverlaps).UnixNano()
	if err := happens(d, ctx); err != nil {
		return 0, err
	}
	if err := errors.Join(awaitShares(ctx, d.ws, d.t.Partitions), rest(ctx, gapWatches)); err != nil {
		return 0, err
	}
	var events []Told
	for _, w := range d.all {
		events = append(events, w.handled()...)
	}
	return pauseOf(events, from, d.t.Partitions)
}

// pauseOf is the longest time between two events of one partition, from a moment on.
func pauseOf(events []Told, from int64, partitions int) (longest time.Duration, err error) {
	slices.SortFunc(events, func(a, b Told) int { return cmp.Compare(a.At, b.At) })
	last := map[int]int64{}
	for _, e := range events {
		if e.At < from {
			continue
		}
		if at, ok := last[e.Owned]; ok {
			longest = max(longest, time.Duration(e.At-at))
		}
		last[e.Owned] = e.At
	}
	if len(last) < partitions {
		return 0, fmt.Errorf("events of %d partitions were handled, want %d", len(last), partitions)
	}
	return longest, nil
}

func (d *duel) add(ctx context.Context) error {
	w, err := startWorker(ctx, d.t)
	if err != nil {
		return err
	}
	d.ws, d.all = append(d.ws, w), append(d.all, w)
	return nil
}

// ending ends a worker of a duel.
func ending(end func(*workerProcess)) func(*duel, context.Context) error {
	return func(d *duel, _ context.Context) error {
		end(d.ws[0])
		d.ws = d.ws[1:]
		return nil
	}
}
