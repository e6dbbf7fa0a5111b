// A worker reads ahead as far as PrefetchBytes allows, of every partition, and keeps nothing that
// is processed.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A seeing is a processor that shows each of its events.
type seeing func(see func(*runnel.Event)) (runnel.ProcessFunc[[]byte], *runnel.ProcessorOptions)

var seeings = map[string]seeing{
	"Raw": func(see func(*runnel.Event)) (runnel.ProcessFunc[[]byte], *runnel.ProcessorOptions) {
		return func(_ context.Context, e *runnel.Events[[]byte]) error {
			for event := range e.Raw() {
				see(event)
			}
			return nil
		}, nil
	},
	"Each": func(see func(*runnel.Event)) (runnel.ProcessFunc[[]byte], *runnel.ProcessorOptions) {
		return runnel.Each(func(_ context.Context, e *runnel.Event, _ []byte) error { see(e); return nil }), nil
	},
	"limited": func(see func(*runnel.Event)) (runnel.ProcessFunc[[]byte], *runnel.ProcessorOptions) {
		return runnel.Each(func(_ context.Context, e *runnel.Event, _ []byte) error { see(e); return nil }),
			&runnel.ProcessorOptions{Timeout: time.Minute}
	},
	"batches": func(see func(*runnel.Event)) (runnel.ProcessFunc[[]byte], *runnel.ProcessorOptions) {
		return runnel.EachBatch(10, 0, func(_ context.Context, batch []*runnel.Event, _ [][]byte) error {
			for _, e := range batch {
				see(e)
			}
			return nil
		}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 3}}
	},
}

// Of payloads that are not small nothing stays in memory once they are processed, unless the
// function keeps the event.
func TestPayloadsOfProcessedEventsAreLetGo(t *testing.T) {
	url := redistest.Start(t).URL()
	for name, loop := range seeings {
		t.Run(name, func(t *testing.T) { letsGo(t, url, name, loop) })
	}
}

func letsGo(t *testing.T, url, name string, loop seeing) {
	const events = 40
	app := runnel.New(name, &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func([]byte) string { return "" }, &runnel.StreamOptions{Partitions: 1})
	var mu sync.Mutex
	var payloads []weak.Pointer[byte]
	var kept *runnel.Event
	var done atomic.Int64
	fn, options := loop(func(e *runnel.Event) {
		mu.Lock()
		payloads = append(payloads, weak.Make(unsafe.SliceData(e.Data())))
		if len(payloads) == 7 {
			kept = e
		}
		mu.Unlock()
		done.Add(1)
	})
	s.Process("p", fn, options)
	records := make([][]byte, events)
	for i := range records {
		records[i] = make([]byte, 100<<10)
	}
	if err := s.Send(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- app.Run(ctx) }()
	redistest.Eventually(t, "all events are processed", func() bool { return done.Load() == events })
	held := func() (n int) {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		for _, p := range payloads {
			if p.Value() != nil {
				n++
			}
		}
		return n
	}
	redistest.Eventually(t, "only the payload that the function keeps is in memory", func() bool { return held() == 1 })
	if len(kept.Data()) < 100<<10 {
		t.Errorf("the event that was kept has %d bytes", len(kept.Data()))
	}
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A partition whose next event does not fit any more, though by the size of the
// latest ones it would, is left alone: reading it again and again would bring
// nothing, and keep the others waiting.
func TestAPartitionNearItsBytesStarvesNoOther(t *testing.T) {
	const small = 300
	srv := redistest.Start(t)
	counter := redistest.CountingDialer(nil)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: counter.Dial, DisableIdentity: true})
	defer rdb.Close()
	app := runnel.New("contract", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	type parcel struct {
		Partition int
		Data      []byte
	}
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return fmt.Sprint(p.Partition) }, &runnel.StreamOptions{
		Partitions:  2,
		Partitioner: &runnel.Partitioner{Name: "own", Func: func(key string, _ int) int { return int(key[0] - '0') }},
	})
	var done atomic.Int64
	began, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	s.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, p parcel) error {
		switch {
		case p.Partition == 1:
			done.Add(1)
		case e.Attempt == 1 && len(p.Data) == 1:
			close(began)
			<-release
		}
		return nil
	}), &runnel.ProcessorOptions{PrefetchBytes: 1 << 20, ReadConns: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- app.Run(ctx) }()
	send := func(p parcel) {
		t.Helper()
		if err := s.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	send(parcel{0, make([]byte, 1)})
	<-began
	for range 10 {
		send(parcel{0, make([]byte, 300<<10)}) // three fit
	}
	for range small {
		send(parcel{1, nil})
	}
	redistest.Eventually(t, "all events of the other partition are processed", func() bool { return done.Load() == small })
	// One read for each of the small ones, at most, and some for the large ones.
	if n := counter.ByName()["XREADGROUP"]; n > small+100 {
		t.Errorf("%d reads for %d small events and 11 others", n, small)
	}
	letGo()
	cancel()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A partition that is busy beside idle ones is read in large pieces: what these would take does not bound it.
func TestABusyPartitionBesideIdleOnesIsReadInLargePieces(t *testing.T) {
	const events = 20_000
	for command, reads := range map[string]runnel.Reads{"XREADGROUP": runnel.ByGroup, "XREAD": runnel.ByPosition} {
		t.Run(command, func(t *testing.T) {
			proxy := faultproxy.Start(t, redistest.Start(t).Addr())
			app := runnel.New("contract", &runnel.Options{RedisURL: "redis://" + proxy.Addr(), Logger: slog.New(slog.DiscardHandler)})
			defer app.Close()
			s := runnel.NewStream(app, "items", keyOfItem, &runnel.StreamOptions{Partitions: 16})
			var done atomic.Int64
			s.Process("p", runnel.Each(func(context.Context, *runnel.Event, item) error { done.Add(1); return nil }), &runnel.ProcessorOptions{Reads: reads})
			for range events / 1000 {
				if err := s.Send(t.Context(), make([]item, 1000)...); err != nil {
					t.Fatal(err)
				}
			}
			stop := running(t, app)
			redistest.Eventually(t, "all are processed", func() bool { return done.Load() == events })
			stop()
			n := proxy.Hits(command)
			t.Logf("%d reads of %d events", n, events)
			if n > events/50 {
				t.Errorf("%d reads of %d events", n, events)
			}
		})
	}
}
