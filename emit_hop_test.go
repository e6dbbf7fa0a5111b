// What is emitted to partitions of other numbers, whose keys lie in other slots.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/faultproxy"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const hopItems, hopSums = 3, 5 // partitions

var ofNumber = &runnel.Partitioner{Name: "number", Func: func(key string, n int) int {
	number, _ := strconv.Atoi(key)
	return number % n
}}

// newHopping is an app whose keys have hash tags, and whose outputs mostly go to partitions with other numbers.
func newHopping(url string, log slog.Handler) *summing {
	s := &summing{app: runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(log), KeyLayout: runnel.LayoutCluster})}
	s.items = runnel.NewStream(s.app, "items", mod10, &runnel.StreamOptions{Partitions: hopItems, Partitioner: ofNumber})
	s.sums = runnel.NewStream(s.app, "sums", func(s sum) string { return fmt.Sprint(s.Total % 10) }, &runnel.StreamOptions{Partitions: hopSums, Partitioner: ofNumber})
	s.table = runnel.NewTable[sum](s.items, "sums", nil)
	s.process(runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error { return s.add(ctx, i) }), runnel.ProcessorOptions{})
	return s
}

// came returns how many outputs there are, in all partitions but those left out.
func came(ctx context.Context, rdb *redis.Client, but ...int) (n int64) {
	for p := range hopSums {
		if !slices.Contains(but, p) {
			n += rdb.XLen(ctx, fmt.Sprintf("__strm:{contract.%d}.sums", p)).Val()
		}
	}
	return n
}

func TestOutputsForOtherSlots(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		s := newHopping(url, slog.DiscardHandler)
		running(t, s.app)
		const n = 300
		for i := 1; i <= n; i++ {
			if err := s.items.Send(t.Context(), item{i}); err != nil {
				t.Fatal(err)
			}
		}
		redistest.Eventually(t, "all outputs", func() bool { return came(t.Context(), rdb) == n })
		s.check(t.Context(), t, n)
		for p := range hopItems {
			out := fmt.Sprintf("__out:{contract.%d}.items.p", p)
			redistest.Eventually(t, "nothing left in "+out, func() bool { return rdb.XLen(t.Context(), out).Val() == 0 })
		}
	})
}

// Where a partition has outputs of a later ownership, which a failover has forgotten, those of this one would pass for old: it is
// taken over again, under a later epoch.
func TestOutputsBehindThoseOfALaterEpoch(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		ahead := time.Now().Add(time.Hour).UnixMilli()
		if err := rdb.HSet(t.Context(), "__hop:{contract.4}.sums", "items/p/1", fmt.Sprint(ahead, "-7")).Err(); err != nil {
			t.Fatal(err)
		}
		s := newHopping(url, slog.DiscardHandler)
		running(t, s.app)
		if err := s.items.Send(t.Context(), item{4}); err != nil { // of partition 1
			t.Fatal(err)
		}
		redistest.Eventually(t, "the output", func() bool { return came(t.Context(), rdb) == 1 })
		last := rdb.HGet(t.Context(), "__hop:{contract.4}.sums", "items/p/1").Val()
		if last != fmt.Sprint(ahead+1, "-1") {
			t.Errorf("the last that came is %s, the one before was of %d", last, ahead)
		}
		s.check1(t, "4", sum{4, 1})
	})
}

func (s *summing) check1(t *testing.T, key string, want sum) {
	t.Helper()
	if row, _, err := s.table.Get(t.Context(), key); row != want || err != nil {
		t.Errorf("row %s is %v, %v, want %v", key, row, err, want)
	}
}

// A target that takes nothing holds up what is for it: no other target, no shutdown, and nothing is lost.
func TestATargetInAnotherSlotThatTakesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
		const broken = "__strm:{contract.4}.sums"
		var log lines
		s := newHopping(url, slog.NewTextHandler(&log, nil))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.app.Run(ctx) }()
		send := func(numbers ...int) {
			t.Helper()
			for _, n := range numbers {
				if err := s.items.Send(t.Context(), item{n}); err != nil {
					t.Fatal(err)
				}
			}
		}
		send(1)
		redistest.Eventually(t, "an output", func() bool { return came(t.Context(), rdb) == 1 })
		if err := rdb.Set(t.Context(), broken, "no stream", 0).Err(); err != nil {
			t.Fatal(err)
		}
		send(4, 10, 20, 3, 5) // the first for the broken one
		redistest.Eventually(t, "the other outputs", func() bool { return came(t.Context(), rdb, 4) == 6-1 })
		redistest.Eventually(t, "a line that names the target", func() bool { return log.has("partition 4 of stream sums", "op=outputs") })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := rdb.Del(t.Context(), broken).Err(); err != nil {
			t.Fatal(err)
		}
		running(t, newHopping(url, slog.DiscardHandler).app)
		redistest.Eventually(t, "all outputs", func() bool { return came(t.Context(), rdb) == 6 })
		if list := rdb.XRange(t.Context(), broken, "-", "+").Val(); len(list) != 1 {
			t.Errorf("came %v", list)
		}
	})
}

// What was put into an outbox and not read holds the partition up once it is much, also where each target takes what is for it.
func TestAnOutboxThatIsNotRead(t *testing.T) {
	srv := redistest.Start(t)
	rdb, way := srv.Client(t), faultproxy.Start(t, srv.Addr())
	var held atomic.Bool
	var others atomic.Int64
	held.Store(true)
	reads := way.On("EVALSHA", faultproxy.Every).Containing("__out:{contract.1}.items.p", "\r\n262144\r\n").Do(faultproxy.Answer("-LOADING wait\r\n"))
	app := runnel.New("contract", &runnel.Options{RedisURL: "redis://" + way.Addr(), Logger: slog.New(slog.DiscardHandler), KeyLayout: runnel.LayoutCluster})
	items := runnel.NewStream(app, "items", func(i item) string { return fmt.Sprint(i.N) }, &runnel.StreamOptions{Partitions: 2, Partitioner: ofNumber})
	sums := runnel.NewStream(app, "sums", func(s sum) string { return fmt.Sprint(s.Total) }, &runnel.StreamOptions{Partitions: hopSums, Partitioner: ofNumber})
	items.Process("p", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
		switch {
		case i.N == 0:
			others.Add(1)
			return nil
		case i.N == 9 && held.Load():
			t.Error("the event was begun")
		}
		return sums.Emit(ctx, slices.Repeat([]sum{{Total: 2}, {Total: 3}}, 300)...)
	}), &runnel.ProcessorOptions{Atomic: true})
	running(t, app)
	send := func(n int) {
		t.Helper()
		if err := items.Send(t.Context(), item{n}); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range []int{1, 3, 5} {
		send(n)
		redistest.Eventually(t, "the commit", func() bool { return rdb.XLen(t.Context(), "__out:{contract.1}.items.p").Val() == int64(i+1)*600 })
	}
	send(7) // which may have been awaited before
	send(9)
	for i := range 10 { // of another partition, which goes on
		send(0)
		redistest.Eventually(t, "another event", func() bool { return others.Load() == int64(i+1) })
	}
	held.Store(false)
	reads.Release()
	redistest.Eventually(t, "all outputs", func() bool { return came(t.Context(), rdb) == 5*600 })
}

// Emit waits for a partition that cannot tell what it has, no longer than its context lasts, and at a shutdown not at all. The event
// has not failed by that.
func TestEmitToAPartitionThatDoesNotAnswer(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	const broken = "__hop:{contract.4}.sums"
	if err := rdb.Set(t.Context(), broken, "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	hopping := func() *summing {
		s := newHopping(srv.URL(), slog.DiscardHandler)
		s.items.Process("q", runnel.Each(func(ctx context.Context, _ *runnel.Event, i item) error {
			short, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			if err := s.sums.Emit(short, sum{Total: 4}); calls.Add(1) == 1 && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			return s.sums.Emit(ctx, sum{Total: 4})
		}), &runnel.ProcessorOptions{Atomic: true, OnError: runnel.Ignore, Grace: time.Hour})
		return s
	}
	s := hopping()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.app.Run(ctx) }()
	if err := s.items.Send(t.Context(), item{1}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "a call that waits", func() bool { return calls.Load() == 1 })
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(redistest.Patience):
		t.Fatal("the shutdown waits")
	}
	if err := rdb.Del(t.Context(), broken).Err(); err != nil {
		t.Fatal(err)
	}
	running(t, hopping().app)
	redistest.Eventually(t, "the output", func() bool { return rdb.XLen(t.Context(), "__strm:{contract.4}.sums").Val() > 0 })
}
