package rstream

import (
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/testredis"
)

// What scenes may cost the server, of its own time.
const (
	longestScript = 20 * time.Millisecond
	longestRow    = 100 * time.Millisecond
)

// meteredEnv is an env whose client, not whose raw one, is measured.
func meteredEnv(t *testing.T) (*env, *testredis.Meter) {
	t.Helper()
	s := testredis.Start(t)
	m := testredis.StartMeter(t, s)
	e := newEnv(t, m.Addr(), true)
	e.raw = s.Client(t)
	return e, m
}

func TestManyDelayedEventsDueAtOnce(t *testing.T) {
	const partitions, events = 64, 2000
	e, meter := meteredEnv(t)
	_, err := e.EnsureMeta(e.ctx(), "orders", Meta{Partitions: partitions, Size: 10 * events, Overflow: OverflowReject, Processors: []string{"printer"}})
	e.must(err)
	first, d := e.dueKeys("orders", 0), Delay{Stream: "orders"}
	for range events {
		d.Records = append(d.Records, DelayedRecord{Fields: []string{"data", strings.Repeat("x", 100)}, After: time.Hour})
	}
	places := make([]DuePlace, partitions)
	prepare := func() {
		e.must(e.raw.FlushAll(e.ctx()).Err())
		e.must(e.Delay(e.ctx(), []Delay{d})[0].Err)
		e.must(e.raw.Do(e.ctx(), "ZUNIONSTORE", first.Due, 1, first.Due, "WEIGHTS", 0).Err()) // all are due
		for i := range places {
			places[i] = DuePlace{"orders", i}
			if names := e.dueKeys("orders", i).Names(); i > 0 {
				for k, key := range first.Names() {
					e.must(e.raw.Copy(e.ctx(), key, names[k], 0, false).Err())
				}
			}
		}
	}
	cost := meter.Hold(longestScript, longestRow, prepare, func() {
		for moved := int64(0); moved < partitions*events; {
			for _, m := range e.Move(e.ctx(), places) {
				e.must(m.Err)
				moved += m.Events
			}
		}
	})
	t.Log(cost)
	for i := range places {
		equal(t, "length", e.raw.XLen(e.ctx(), e.keys.Partition("orders", i)).Val(), events)
	}
}
