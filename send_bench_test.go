// Sends of whole batches, beside plain pipelines of XADD.

package runnel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

const benchBatch = 100 // records

// parcel is a record of some 100 bytes.
type parcel struct{ Key, Text string }

func parcels(n int) []parcel {
	out := make([]parcel, n)
	for i := range out {
		out[i] = parcel{fmt.Sprint("customer-", i*7919%1000), strings.Repeat("x", 80)}
	}
	return out
}

// BenchmarkSend compares Send with what a client can do at most: pipelines of
// XADD with a maximal length. An operation is 5 000 records three times, by Send,
// by pipelines of entries that are encoded on the way, and by pipelines of entries
// that were encoded before; they take turns in going first. The metrics are the
// medians of the operations' ratios: 1 is as fast as plain.
//
//	go test -run - -bench Send -benchtime 150x .
func BenchmarkSend(b *testing.B) {
	for _, partitions := range []int{1, 16} {
		b.Run(fmt.Sprint(partitions, " partitions"), func(b *testing.B) { benchmarkSend(b, partitions) })
	}
}

func benchmarkSend(b *testing.B, partitions int) {
	srv := redistest.Start(b)
	app := runnel.New("bench", &runnel.Options{RedisURL: srv.URL()})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Partitions: partitions, MaxLen: 1 << 20})
	records, rdb := parcels(50*benchBatch), srv.Client(b)
	prepared := entriesOf(b, records, partitions)
	runs := []func(){
		func() {
			for batch := range slices.Chunk(records, benchBatch) {
				if err := s.Send(b.Context(), batch...); err != nil {
					b.Fatal(err)
				}
			}
		},
		func() {
			for batch := range slices.Chunk(records, benchBatch) {
				plainSend(b, rdb, entriesOf(b, batch, partitions))
			}
		},
		func() {
			for batch := range slices.Chunk(prepared, benchBatch) {
				plainSend(b, rdb, batch)
			}
		},
	}
	for _, run := range runs {
		run()
	}
	var encoding, plain []float64
	for n := range b.N {
		if n%20 == 0 {
			if err := rdb.FlushAll(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
		}
		var took [3]float64
		for k := range runs {
			which := (n + k) % len(runs)
			began := time.Now()
			runs[which]()
			took[which] = time.Since(began).Seconds()
		}
		encoding, plain = append(encoding, took[1]/took[0]), append(plain, took[2]/took[0])
	}
	slices.Sort(encoding)
	slices.Sort(plain)
	b.ReportMetric(encoding[len(encoding)/2], "of-plain-that-encodes")
	b.ReportMetric(plain[len(plain)/2], "of-plain")
}

// A plainEntry is what Send would append.
type plainEntry struct{ log, data string }

func entriesOf(b *testing.B, records []parcel, partitions int) []plainEntry {
	entries := make([]plainEntry, len(records))
	for i, r := range records {
		data, err := codec.MsgPack.Encode(r)
		if err != nil {
			b.Fatal(err)
		}
		entries[i] = plainEntry{fmt.Sprint("plain.", runnel.XXHash.Func(r.Key, partitions)), string(data)}
	}
	return entries
}

// plainSend sends entries in one pipeline.
func plainSend(b *testing.B, rdb *redis.Client, entries []plainEntry) {
	p := rdb.Pipeline()
	for _, e := range entries {
		p.XAdd(b.Context(), &redis.XAddArgs{Stream: e.log, MaxLen: 50_000, Approx: true, Values: []string{"data", e.data}})
	}
	if _, err := p.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
}
