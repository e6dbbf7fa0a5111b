package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/appview"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/worker"
)

type parcel struct {
	Key  string
	Text string
}

// loops are the shapes of a processor's loop.
var loops = []struct {
	name string
	fn   runnel.ProcessFunc[parcel]
}{
	{"Raw", func(_ context.Context, events *runnel.Events[parcel]) error {
		for range events.Raw() {
			continue
		}
		return nil
	}},
	{"Records", func(_ context.Context, events *runnel.Events[parcel]) error {
		for range events.Records() {
			continue
		}
		return nil
	}},
	{"Take100", func(_ context.Context, events *runnel.Events[parcel]) error {
		for range events.Take(100, 0).Records() {
			continue
		}
		return nil
	}},
}

type blank struct{ codec.Codec }

func (blank) Name() string               { return "blank" }
func (blank) Decode([]byte, any) error   { return nil }
func (blank) Encode(any) ([]byte, error) { return nil, nil }

// feed runs a loop over n events that skip the server but pass everything between a read and an
// ack.
func feed(tb testing.TB, fn runnel.ProcessFunc[parcel], n int, timed bool) {
	tb.Helper()
	app := runnel.New("bench", &runnel.Options{RedisURL: "redis://127.0.0.1:1"})
	defer app.Close()
	s := runnel.NewStream(app, "parcels", func(p parcel) string { return p.Key }, &runnel.StreamOptions{Codec: blank{}})
	s.Process("count", fn, nil)
	processors, err := appview.Of(app).Processors()
	if err != nil {
		tb.Fatal(err)
	}
	entries := make([]redisconn.Entry, 128)
	for i := range entries {
		entries[i] = redisconn.Entry{ID: fmt.Sprint("1700000000000-", 100+i), Values: map[string]any{"data": strings.Repeat("x", 100)}}
	}
	src := worker.NewFed(processors[0], entries, n)
	if timed {
		src.Timed()
	}
	if err := processors[0].Consume(context.Background(), src.Input()); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkEvent measures the framework's cost per event, without reading, decoding and the acks of
// the server.
func BenchmarkEvent(b *testing.B) {
	for _, l := range loops {
		for _, timed := range []bool{false, true} {
			b.Run(l.name+map[bool]string{true: "Timed"}[timed], func(b *testing.B) {
				b.ReportAllocs()
				feed(b, l.fn, b.N, timed)
			})
		}
	}
}
