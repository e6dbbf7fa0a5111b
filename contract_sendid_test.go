package runnel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// numberedPartitions puts item n into partition n of any number of partitions.
var numberedPartitions = &runnel.Partitioner{Name: "number", Func: func(key string, partitions int) int {
	n := 0
	fmt.Sscan(key, &n)
	return n % partitions
}}

func numberOf(i item) string { return fmt.Sprint(i.N) }

// Events of several partitions may have one entry ID: those of one Send do, most of
// the time. What a function sends for each of them arrives all the same, wherever it
// goes.
func TestEventsOfOneEntryIDSendEachTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to int
		key      func(item) string
	}{
		"16 to 1":          {16, 1, numberOf},
		"8 to 4":           {8, 4, numberOf},
		"with another key": {16, 16, keyOfItem},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, url string, rdb *redis.Client) {
				app := runnel.New("contract", &runnel.Options{RedisURL: url, Logger: slog.New(slog.DiscardHandler)})
				t.Cleanup(func() { app.Close() })
				in := runnel.NewStream(app, "in", numberOf, &runnel.StreamOptions{Partitions: tt.from, Partitioner: numberedPartitions})
				out := runnel.NewStream(app, "out", tt.key, &runnel.StreamOptions{Partitions: tt.to, Partitioner: numberedPartitions})
				handled := make(chan error, 2*tt.from)
				for _, name := range []string{"p", "q"} { // two processors send each their own, too
					in.Process(name, runnel.Each(func(ctx context.Context, e *runnel.Event, i item) error {
						same := runnel.Outgoing[item]{Record: i, DedupID: e.SendID(0)}
						_, err := out.SendEvents(ctx, same, same, runnel.Outgoing[item]{Record: i, DedupID: e.SendID(1)})
						handled <- err
						return nil
					}), nil)
				}
				running(t, app)
				for n := range tt.from { // one ID in all of them, as one Send does within a millisecond
					add := &redis.XAddArgs{Stream: fmt.Sprint("__strm:contract.in.", n), ID: "1700000000000-0", Values: []any{"json", fmt.Sprintf(`{"n":%d}`, n)}}
					if err := rdb.XAdd(t.Context(), add).Err(); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 * tt.from {
					if err := <-handled; err != nil {
						t.Error(err)
					}
				}
				got, want := int64(0), int64(2*2*tt.from)
				for n := range tt.to {
					got += rdb.XLen(t.Context(), fmt.Sprint("__strm:contract.out.", n)).Val()
				}
				if got != want {
					t.Errorf("%d events arrived, want %d", got, want)
				}
			})
		})
	}
}

func TestSendIDNamesTheWholeEvent(t *testing.T) {
	app := runnel.New("contract", nil)
	in := runnel.NewStream(app, "in", keyOfItem, nil)
	var got []string
	for _, name := range []string{"p", "q"} {
		in.Process(name, runnel.Each(func(_ context.Context, e *runnel.Event, _ item) error {
			got = append(got, e.SendID(0), e.SendID(1))
			return nil
		}), nil)
		if r := runneltest.Events(t, in, name).Partition(11).Records(item{1}).Run(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	got = append(got, (&runnel.Event{Stream: "in", Partition: 3, ID: "1-0"}).SendID(2)) // made by hand
	want := []string{"in/p/11/1-0/0", "in/p/11/1-0/1", "in/q/11/1-0/0", "in/q/11/1-0/1", "in//3/1-0/2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
