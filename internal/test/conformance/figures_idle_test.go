package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestIdleWorker(t *testing.T) {
	t.Parallel()
	tests := []struct {
		partitions int
		most       float64 // requests per second
	}{{16, 5}, {1024, 30}}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.partitions), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { o.Stream.Partitions = tt.partitions })
			newTracker(history.Memory()).process(a, "check", nil, nil)
			a.run()
			settled := ready(t, 60*time.Second, a)
			await(t, "the first look at each partition to be over", 60*time.Second, func() bool {
				const long = 3 * time.Second // for a busy machine, which may have made none
				a.requests.Reset()
				<-time.After(long)
				n := a.requests.Total()
				return n > 0 && float64(n) < tt.most*long.Seconds()
			})
			a.requests.Reset()
			const watched = 20 * time.Second
			<-time.After(watched)
			rate := float64(a.requests.Total()) / watched.Seconds()
			t.Logf("%d partitions, settled within %v: %.2f requests per second when idle (promised: under %.0f): %v",
				tt.partitions, settled.Round(time.Millisecond), rate, tt.most, a.requests.ByName())
			if rate >= tt.most {
				t.Errorf("%.2f requests per second", rate)
			}
			a.stop()
		})
	}
}

// The handler of one partition takes two seconds; the other partitions continue without a pause.
func TestASlowPartitionDelaysNoOther(t *testing.T) {
	const partitions = 8
	srv := redistest.Start(t)
	tr := newTracker(history.Memory())
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { o.Stream.Partitions = partitions })
	var mu sync.Mutex
	var latencies []time.Duration
	slow := make(chan struct{})
	tr.process(a, "check", nil, func(_ context.Context, e *runnel.Event, p parcel) error {
		if e.Partition == 3 && p.Seq == 1 {
			close(slow)
			<-time.After(2 * time.Second)
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if e.Partition != 3 {
			latencies = append(latencies, time.Since(e.Appended()))
		}
		return nil
	})
	a.run()
	ready(t, 50*time.Second, a)
	flow := startFlow(t, newProducer(t, srv.URL(), partitions), tr.history, partitions, 10*time.Millisecond)
	receive(t, "the slow handler to begin", slow)
	await(t, "the slow handler", 60*time.Second, func() bool { return tr.passed("check", partitions, 1) })
	flow.stop()
	awaitRest(t, srv, partitions, 1)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(latencies)
	n := len(latencies)
	t.Logf("send to handler beside a partition that sleeps 2 s: median %v, p99 %v, largest %v of %d events",
		latencies[n/2], latencies[n*99/100], latencies[n-1], n)
	if latencies[n*99/100] > 1500*time.Millisecond {
		t.Error("an event of another partition waited too long")
	}
	a.stop()
	tr.judge(t, srv, partitions, history.Options{Processors: []string{"check"}})
}
