package conformance_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/history"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const megabyte = 1 << 20

// Events of 5 MB wait for a slow handler: no more of them are in memory than
// the bounds allow.
func TestLargeEventsStayWithinBounds(t *testing.T) {
	const partitions, each, size, prefetch = 4, 10, 5 * megabyte, 8 * megabyte
	srv := redistest.Start(t)
	producer := newProducer(t, srv.URL(), partitions)
	keys, pad := keysOf(partitions), strings.Repeat("x", size)
	for seq := range int64(each) {
		for _, key := range keys {
			producer.send(parcel{Key: key, Seq: seq + 1, Pad: pad})
		}
	}
	before := heap()
	tr := newTracker(history.Memory())
	a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) {
		o.Stream.Partitions = partitions
		o.Processor.PrefetchBytes = prefetch
	})
	var in atomic.Int64
	leave := make(chan struct{})
	tr.process(a, "check", nil, func(_ context.Context, _ *runnel.Event, p parcel) error {
		if len(p.Pad) != size {
			t.Errorf("an event of %d bytes", len(p.Pad))
		}
		if p.Seq == 2 {
			in.Add(1)
			<-leave
		}
		return nil
	})
	a.run()
	await(t, "a handler in each partition", 60*time.Second, func() bool { return in.Load() == partitions })
	// The buffers are full when nothing is read any more.
	last := int64(-1)
	for reads := read(a); reads != last; reads = read(a) {
		last = reads
		<-time.After(300 * time.Millisecond)
	}
	held := heap() - before
	// The event in the handler is there twice: encoded and decoded.
	bound := int64(partitions*(prefetch+2*size) + 32*megabyte)
	t.Logf("heap with full buffers: %d MB for %d partitions, bound %d MB; unbounded it would be %d MB",
		held/megabyte, partitions, bound/megabyte, partitions*each*size/megabyte)
	if held > bound {
		t.Errorf("%d MB are held", held/megabyte)
	}
	close(leave)
	awaitRest(t, srv, partitions, 1)
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if n := tr.completed(); n != partitions*each {
		t.Errorf("%d events completed, want %d", n, partitions*each)
	}
}

func read(a *parcelApp) int64 { return int64(a.requests.ByName()["XREADGROUP"]) }

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
