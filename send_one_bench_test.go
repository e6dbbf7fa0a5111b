// Sends of one record each by many goroutines, beside plain XADD.

package runnel_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// BenchmarkSendOneByOne compares calls of Send with one record each with XADD one
// by one, with a maximal length and of entries that were encoded before, from as
// many goroutines. An operation is 5 000 records by each; they take turns in going
// first. The metric is the median of the operations' ratios: 1 is as fast as plain.
//
//	go test -run - -bench SendOneByOne -benchtime 50x .
func BenchmarkSendOneByOne(b *testing.B) {
	for _, senders := range []int{1, 64} {
		b.Run(fmt.Sprint(senders, " senders"), func(b *testing.B) { benchmarkSendOneByOne(b, senders) })
	}
}

func benchmarkSendOneByOne(b *testing.B, senders int) {
	srv := redistest.Start(b)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	app := runnel.New("bench", &runnel.Options{RedisURL: srv.URL()})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{MaxLen: 1 << 20})
	records := parcels(50 * benchBatch)
	prepared := entriesOf(b, records, 16)
	runs := []func(i int) error{
		func(i int) error { return s.Send(b.Context(), records[i]) },
		func(i int) error {
			e := prepared[i]
			return rdb.XAdd(b.Context(), &redis.XAddArgs{Stream: e.log, MaxLen: 50_000, Approx: true, Values: []string{"data", e.data}}).Err()
		},
	}
	for _, run := range runs {
		fromMany(b, senders, len(records), run)
	}
	var ratios []float64
	for n := range b.N {
		if n%20 == 0 {
			if err := rdb.FlushAll(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
		}
		var took [2]float64
		for k := range runs {
			which := (n + k) % len(runs)
			began := time.Now()
			fromMany(b, senders, len(records), runs[which])
			took[which] = time.Since(began).Seconds()
		}
		ratios = append(ratios, took[1]/took[0])
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-plain")
}

// fromMany calls send for each of n records, from so many goroutines.
func fromMany(b *testing.B, senders, n int, send func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := send(int(i - 1)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
