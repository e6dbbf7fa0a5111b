package conformance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func quick(o *runnel.Options) {
	o.Stream.Partitions = 1
	o.Processor.Lease = shortExpiry
	o.Processor.Grace = 200 * time.Millisecond
}

// names fails the test unless the error contains all texts.
func names(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that names %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %q: %v", text, err)
		}
	}
}

// nothingLost runs a worker whose handler works, and checks that every event sent is now processed.
func nothingLost(t *testing.T, srv *redistest.Server, tr *tracker, partitions, processors int) {
	t.Helper()
	healthy := newParcelApp(t, srv.URL(), "healthy", func(o *runnel.Options) {
		quick(o)
		o.Stream.Partitions = partitions
	})
	tr.process(healthy, "check", nil, nil)
	healthy.run()
	awaitRest(t, srv, partitions, processors)
	healthy.stop()
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}

// A function that ends the worker: the error names the event, and the events wait for the next
// worker.
func TestFaultyFunctionHalts(t *testing.T) {
	tests := []struct {
		name string
		fn   runnel.ProcessFunc[parcel]
		want []string
		is   error
	}{
		{"panic", runnel.Each(func(context.Context, *runnel.Event, parcel) error { panic("boom") }), []string{"panic: boom", "event ", "faults_handler_test.go"}, nil},
		{"nil map", runnel.Each(func(context.Context, *runnel.Event, parcel) error {
			//lint:ignore SA5000 it is to panic
			map[string]int(nil)["a"] = 1
			return nil
		}), []string{"panic: assignment to entry in nil map", "event "}, nil},
		{"returns nil at once", func(context.Context, *runnel.Events[parcel]) error { return nil }, []string{"without ranging"}, runnel.ErrNotConsumed},
		{"returns an error at once", func(context.Context, *runnel.Events[parcel]) error { return errors.New("no database") }, []string{"no database"}, nil},
		{"error", runnel.Each(func(context.Context, *runnel.Event, parcel) error { return errors.New("no stock") }), []string{"no stock", "event "}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			a := newParcelApp(t, srv.URL(), "faulty", quick)
			a.parcels.Process("check", tt.fn, nil)
			a.send(parcel{"k", 1, ""}, parcel{"k", 2, ""})
			err := a.run().ended(30 * time.Second)
			names(t, err, append(tt.want, "app post", "stream parcels", "partition 0", "processor check")...)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("errors.Is(%v, %v) is false", err, tt.is)
			}
			nothingLost(t, srv, newTracker(history.Memory()), 1, 1)
		})
	}
}

// A function that ignores its context is abandoned, by name, a second after its grace; its events
// move to another worker.
func TestFunctionThatNeverReturns(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := newParcelApp(t, srv.URL(), "stuck", quick)
	entered, leave := make(chan struct{}), make(chan struct{})
	a.parcels.Process("check", runnel.Each(func(context.Context, *runnel.Event, parcel) error {
		close(entered)
		<-leave
		return nil
	}), nil)
	defer close(leave)
	a.send(parcel{"k", 1, ""}, parcel{"k", 2, ""})
	a.run()
	receive(t, "the function to be called", entered)
	began := time.Now()
	a.cancel()
	err := a.ended(60 * time.Second)
	took := time.Since(began)
	names(t, err, "app post", "stream parcels", "processor check", "partitions 0:", "200ms")
	t.Logf("Run gave up after %v (promised: grace 200 ms and a second)", took.Round(time.Millisecond))
	if took < 1200*time.Millisecond || took > 12*time.Second {
		t.Errorf("Run returned after %v", took)
	}
	nothingLost(t, srv, newTracker(history.Memory()), 1, 1)
}

// at reports whether these partitions have reached a sequence number.
func (tr *tracker) at(processor string, seq int64, partitions ...int) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, p := range partitions {
		if tr.seq[place{processor, p}] != seq {
			return false
		}
	}
	return true
}

// The policy decides about undecodable records.
func TestUndecodableRecord(t *testing.T) {
	const partitions = 4
	tests := []struct {
		policy runnel.Policy
		ends   bool
		says   []string // in the error, or in a line of the log
	}{
		{runnel.Halt, true, nil},
		{runnel.Quarantine, false, []string{"level=ERROR", "quarantined"}},
		{runnel.Ignore, false, []string{"level=WARN", "ignored"}},
	}
	for _, tt := range tests {
		t.Run(tt.policy.String(), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			tr := newTracker(history.Memory())
			a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
				quick(o)
				o.Stream.Partitions = partitions
				o.Processor.OnError = tt.policy
			})
			tr.process(a, "check", nil, nil)
			keys, rdb := keysOf(partitions), srv.Client(t)
			a.send(parcel{Key: keys[2], Seq: 1})
			id, err := rdb.Do(t.Context(), "XADD", partitionKey(2), "*", "data", "\xc1 no msgpack").Text()
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				a.send(parcel{Key: key, Seq: 2})
			}
			a.run()
			where := []string{"stream parcels", "event 2/" + id, "msgpack"}
			if tt.ends {
				names(t, a.ended(30*time.Second), append(where, "partition 2", "processor check")...)
			} else {
				await(t, "a line about the event", 30*time.Second, func() bool { return a.log.line(append(tt.says, where...)...) != "" })
				await(t, "the other partitions", 30*time.Second, func() bool { return tr.at("check", 2, 0, 1, 3) })
				if tt.policy == runnel.Ignore {
					awaitRest(t, srv, partitions, 1)
				}
				a.stop()
			}
			if tt.policy != runnel.Ignore {
				// The event is still there for an operator to inspect and remove.
				if n := rdb.XRange(t.Context(), partitionKey(2), id, id).Val(); len(n) != 1 {
					t.Errorf("the event is gone: %v", n)
				}
			}
			rdb.XDel(t.Context(), partitionKey(2), id)
			if tt.policy == runnel.Quarantine {
				resume(t, srv, 2)
			}
			nothingLost(t, srv, tr, partitions, 1)
		})
	}
}

// resume ends the quarantine of a partition, as an operator does.
func resume(t *testing.T, srv *redistest.Server, partition int) {
	t.Helper()
	client, err := store.Open(redisconn.Options{URL: srv.URL(), Keys: postKeys})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, found, err := client.ReleaseQuarantine(t.Context(), client.Partition("parcels", "check", partition), false); err != nil || !found {
		t.Errorf("resume: found %v, %v", found, err)
	}
}
