// A thousand events take few requests, and a record sent few allocations.

package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// What an event costs, counted and not timed: a backlog is read and acked in
// batches, and a batch is sent as one request. The bounds are about twice what is
// needed; something that goes once per event is far beyond them.
func TestRequestsPerThousandEvents(t *testing.T) {
	tier.Sequential(t)
	for _, partitions := range []int{1, 16, 256} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			const events = 50_000
			srv := redistest.Start(t)
			counter := redistest.CountingDialer(nil)
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Dialer: counter.Dial})
			defer rdb.Close()
			app := runnel.New("cost", &runnel.Options{Redis: rdb, Logger: slog.New(slog.DiscardHandler)})
			defer app.Close()
			s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: partitions})
			backlog(t, s, counter, events)
			var handled atomic.Int64
			done := make(chan struct{})
			s.Process("count", func(_ context.Context, stream *runnel.Events[parcel]) error {
				for range stream.Raw() {
					if handled.Add(1) == events {
						close(done)
					}
				}
				return nil
			}, nil)
			counter.Reset()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- app.Run(ctx) }()
			<-done
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			reads, acks := counter.ByName()["XREADGROUP"], counter.ByName()["XACK"]
			t.Logf("%d reads, %d acks, %d requests, %d round trips", reads, acks, counter.Total(), counter.RoundTrips())
			if most := 400 + 4*events/min(128*partitions, 8192); reads > most {
				t.Errorf("%d reads for %d events, want at most %d", reads, events, most)
			}
			most := events / 50 // a request acks what one read brought of a partition
			if partitions > 64 {
				most = events / 8
			}
			if acks > most {
				t.Errorf("%d acks for %d events, want at most %d", acks, events, most)
			}
			if n := counter.RoundTrips(); n > int64(500+10*partitions+most) {
				t.Errorf("%d round trips for %d events", n, events)
			}
		})
	}
}

// parcel is a record of some 100 bytes.
type parcel struct{ Key, Text string }

// parcels are n of them, of 1 000 customers.
func parcels(n int) []parcel {
	out := make([]parcel, n)
	for i := range out {
		out[i] = parcel{fmt.Sprint("customer-", i*7919%1000), strings.Repeat("x", 80)}
	}
	return out
}

// backlog sends events, 1 000 at a time, each batch as one request.
func backlog(t *testing.T, s *runnel.Stream[parcel], counter *redistest.Counter, events int) {
	t.Helper()
	all := parcels(1000)
	if err := s.Send(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	counter.Reset()
	for range events/len(all) - 1 {
		if err := s.Send(t.Context(), all...); err != nil {
			t.Fatal(err)
		}
	}
	batches := int64(events/len(all) - 1)
	if n := counter.RoundTrips(); n > batches+5 {
		t.Errorf("%d round trips for %d batches of 1 000", n, batches)
	}
	if n := counter.ByName()["EVALSHA"]; int64(n) > batches+5 {
		t.Errorf("%d script calls for %d batches of 1 000", n, batches)
	}
}

// A record that is sent costs few allocations: its payload, and its share of what
// its call needs.
func TestAllocationsPerRecordSent(t *testing.T) {
	srv := redistest.Start(t)
	app := runnel.New("cost", &runnel.Options{RedisURL: srv.URL(), Logger: slog.New(slog.DiscardHandler)})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, nil)
	records := parcels(1000)
	send := func(n int) {
		for range n {
			if err := s.Send(t.Context(), records...); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(3)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	send(20)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / 20_000; per > 6 {
		t.Errorf("%.1f allocations per record, want 6 at most", per)
	} else {
		t.Logf("%.1f allocations per record", per)
	}
}
