package conformance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/runnel-go/runnel/python"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A pyOrder is a record as a Python program writes it.
type pyOrder struct {
	OrderID string  `json:"order_id"`
	Amount  float64 `json:"amount"`
	Count   int     `json:"count"`
	Express bool    `json:"express"`
}

// pyApp is the app "shop" with 16 partitions of pyOrder.
func pyApp(t *testing.T, srv *redistest.Server, codec codec.Codec) (*runnel.App, *runnel.Stream[pyOrder]) {
	app := runnel.New("shop", &runnel.Options{
		RedisURL: srv.URL(), Logger: new(logbook).Logger(),
		Stream: runnel.StreamOptions{Codec: codec, Partitioner: python.Partitioner},
	})
	t.Cleanup(func() { app.Close() })
	return app, runnel.NewStream(app, "orders", func(o pyOrder) string { return o.OrderID }, nil)
}

// collect runs the processor "printer" until it has n records.
func collect(t *testing.T, app *runnel.App, s *runnel.Stream[pyOrder], n int) (got []pyOrder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	var mu sync.Mutex
	s.Process("printer", func(_ context.Context, events *runnel.Events[pyOrder]) error {
		for o := range events.Records() {
			mu.Lock()
			if got = append(got, o); len(got) == n {
				cancel()
			}
			mu.Unlock()
		}
		return nil
	}, nil)
	if err := app.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return got
}

func gzipped(t *testing.T, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Entries written by Python's runnel are consumed unchanged.
func TestPythonEntries(t *testing.T) {
	const text = `{"order_id":"caf\u00e9 \ud83d\ude00","amount":1.5,"count":7,"express":true}`
	want := pyOrder{"café 😀", 1.5, 7, true}
	tests := []struct {
		name  string
		codec codec.Codec
		entry []any
	}{
		{"JSON", codec.JSON, []any{"data", text}},
		{"gzip", codec.Gzip(codec.JSON), []any{"data", gzipped(t, text)}},
		{"attributes", codec.Fields, []any{"order_id", "café 😀", "amount", "1.5", "count", "7", "express", "True"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			err := srv.Client(t).Do(t.Context(), append([]any{"XADD", "__strm:shop.orders.5", "*"}, tt.entry...)...).Err()
			if err != nil {
				t.Fatal(err)
			}
			app, s := pyApp(t, srv, tt.codec)
			if got := collect(t, app, s, 1); len(got) != 1 || got[0] != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A processor continues where Python's runnel has stopped, and leaves its group alone: acked events
// are skipped, pending ones come again.
func TestPythonGroupGivesItsPlace(t *testing.T) {
	srv := redistest.Start(t)
	p := newPyProcessor(t, srv.Client(t))
	app, s := pyApp(t, srv, codec.JSON)
	var counts []int
	for _, o := range collect(t, app, s, 4) {
		counts = append(counts, o.Count)
	}
	if want := []int{2, 3, 4, 5}; !reflect.DeepEqual(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	for _, g := range p.rdb.XInfoGroups(t.Context(), "__strm:shop.orders.5").Val() {
		if g.Name == "printer" {
			if g.Pending != 2 || g.LastDeliveredID != p.ids[3] {
				t.Errorf("the plain group has changed: %+v", g)
			}
			return
		}
	}
	t.Error("the plain group is gone")
}

func TestPythonPartitions(t *testing.T) {
	srv := redistest.Start(t)
	_, s := pyApp(t, srv, codec.JSON)
	sent, err := s.SendEvents(t.Context(), runnel.Outgoing[pyOrder]{Record: pyOrder{OrderID: "abc"}})
	if err != nil || sent[0].Partition != 1 {
		t.Errorf("'abc' went to %+v, want partition 1 (%v)", sent, err)
	}
	numbers := runnel.New("numbers", &runnel.Options{RedisURL: srv.URL(), Stream: runnel.StreamOptions{Partitioner: python.IntPartitioner}})
	defer numbers.Close()
	ints := runnel.NewStream(numbers, "ints", func(pyOrder) string { return "1" }, nil)
	if sent, err = ints.SendEvents(t.Context(), runnel.Outgoing[pyOrder]{}); err != nil || sent[0].Partition != 4 {
		t.Errorf("1 went to %+v, want partition 4 (%v)", sent, err)
	}
}
