package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/runnel-go/runnel/bench/internal/proc"
)

// A meter counts handled events up to a number of them. Every side is counted by
// one, so that counting costs each the same. add may be called concurrently.
type meter struct {
	want  int64
	skip  int64 // so many are handled before the clock starts, 0: the first
	n     atomic.Int64
	slept atomic.Int64 // how long handlers have slept, in ns
	first atomic.Pointer[mark]
	last  mark          // read it after done
	done  chan struct{} // closed when want events were handled
}

// A mark is a moment in the count.
type mark struct {
	n   int64
	at  time.Time
	cpu time.Duration
}

func newMeter(want int) *meter { return &meter{want: int64(want), done: make(chan struct{})} }

func markAt(n int64) mark { return mark{n: n, at: time.Now(), cpu: proc.CPU()} }

// add counts k events that were handled.
func (m *meter) add(k int64) {
	n := m.n.Add(k)
	if start := max(m.skip, 1); n >= start && n-k < start {
		first := markAt(n)
		m.first.Store(&first)
	}
	if n >= m.want && n-k < m.want {
		m.last = markAt(n)
		close(m.done)
	}
}

// sleep simulates a handler's work. It measures how long the sleep really takes, which depends on
// what else the process does.
func (m *meter) sleep(d time.Duration) {
	if d <= 0 {
		return // the shortest sleep there is takes longer than none
	}
	began := time.Now()
	time.Sleep(d)
	m.slept.Add(int64(time.Since(began)))
}

// wait returns when all were handled.
func (m *meter) wait(ctx context.Context) error {
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d events were handled: %w", m.n.Load(), m.want, context.Cause(ctx))
	}
}

// result is the rate from the first event that counts to the last, in events per second, and the
// process's CPU time per event between them, in microseconds; the most memory that the process has
// had, in MiB; and how long handlers slept per event, in microseconds. Call it after wait.
func (m *meter) result() Result {
	first := m.first.Load()
	n, took := float64(m.last.n-first.n), m.last.at.Sub(first.at)
	r := Result{
		"rate": n / took.Seconds(),
		"cpu":  float64((m.last.cpu - first.cpu).Microseconds()) / n,
		"peak": float64(proc.Peak()) / (1 << 20),
	}
	if slept := m.slept.Load(); slept > 0 {
		r["sleep"] = float64(slept) / float64(m.n.Load()) / 1e3
	}
	return r
}
