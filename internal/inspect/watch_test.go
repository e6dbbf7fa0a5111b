package inspect

import (
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel/internal/keys"
	"github.com/runnel-go/runnel/internal/redisconn"
	"github.com/runnel-go/runnel/internal/store"
	"github.com/runnel-go/runnel/internal/test/redistest"
	"github.com/runnel-go/runnel/rebalance"
)

func parts(lagAndAppended ...int64) []PartitionState {
	var out []PartitionState
	for i := 0; i < len(lagAndAppended); i += 2 {
		out = append(out, PartitionState{Partition: i / 2, Lag: lagAndAppended[i], Appended: lagAndAppended[i+1]})
	}
	return out
}

func TestRates(t *testing.T) {
	at := time.UnixMilli(1_767_225_600_000).UTC()
	state := func(after time.Duration, appended int64, p ...PartitionState) *AppState {
		return &AppState{At: at.Add(after), Streams: []StreamState{{Stream: "orders", Appended: appended, Processors: []ProcessorState{{Processor: "printer", Partitions: p}}}}}
	}
	counted := parts(5, 25, 1, 10)
	counted[1].LagMore = true
	broken := parts(5, 25, 1, 10)
	broken[0].Err = "wrong type"
	f := func(v float64) *float64 { return &v }
	tests := []struct {
		name       string
		before     *AppState
		now        *AppState
		appended   *float64
		done       *float64
		partitions []*float64
	}{
		{"the first look", nil, state(0, 35, parts(5, 25, 1, 10)...), nil, nil, []*float64{nil, nil}},
		{"events came and went", state(0, 30, parts(10, 20, 0, 10)...), state(2*time.Second, 35, parts(5, 25, 0, 10)...), f(2.5), f(5), []*float64{f(5), f(0)}},
		{"another stream", &AppState{At: at}, state(time.Second, 35, parts(5, 25)...), nil, nil, []*float64{nil}},
		{"Redis does not count", state(0, -1, parts(5, -1)...), state(time.Second, -1, parts(4, -1)...), nil, nil, []*float64{nil}},
		{"a lag not counted to its end", state(0, 30, parts(10, 20, 1, 10)...), state(time.Second, 35, counted...), f(5), nil, []*float64{f(10), nil}},
		{"one that cannot be read", state(0, 30, parts(10, 20, 1, 10)...), state(time.Second, -1, broken...), nil, nil, []*float64{nil, f(0)}},
		{"moved back", state(0, 30, parts(0, 20, 1, 10)...), state(time.Second, 30, parts(20, 20, 1, 10)...), f(0), nil, []*float64{nil, f(0)}},
		{"a clock that was set back", state(time.Second, 30, parts(0, 20)...), state(0, 30, parts(0, 20)...), nil, nil, []*float64{nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ratesOf(tt.before, tt.now)
			want := []StreamRates{{Stream: "orders", Appended: tt.appended, Processors: []ProcessorRates{{Processor: "printer", Done: tt.done, Partitions: tt.partitions}}}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A further look costs what design.md says, however many members there are.
func TestWatchIsCheap(t *testing.T) {
	server := redistest.Start(t)
	ctx := t.Context()
	c, err := store.Open(redisconn.Options{URL: server.URL(), Keys: keys.Keys{App: "shop", Layout: keys.Standalone}})
	must(t, err)
	defer c.Close()
	_, err = c.EnsureMeta(ctx, "orders", store.Meta{Partitions: 256, MaxLen: 9, Codec: "json", Partitioner: "xxh64", Processors: []string{"printer"}})
	must(t, err)
	g := rebalance.Group{}
	for _, id := range []string{alice, bob} {
		g = g.Join(id, rebalance.Executor{Worker: id, Expiry: time.Second}, 256, "")
		must(t, c.Redis().Set(ctx, c.Keys().Beat("orders", "printer", id), "1", time.Hour).Err())
	}
	_, err = c.Group("orders", "printer").Swap(ctx, nil, g.Encode())
	must(t, err)
	w := NewWatch(c, "", false, 0)
	first, err := w.Look(ctx)
	must(t, err)
	if first.Rates[0].Appended != nil {
		t.Errorf("a rate of %v without a look before", *first.Rates[0].Appended)
	}
	must(t, c.Redis().XAdd(ctx, &redis.XAddArgs{Stream: c.Keys().Partition("orders", 7), Values: []any{"data", "x"}}).Err())

	counter := redistest.CountingDialer(nil)
	shared := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: counter.Dial})
	defer shared.Close()
	watcher, err := store.Open(redisconn.Options{Redis: shared, Keys: c.Keys()})
	must(t, err)
	defer watcher.Close()
	w.c = watcher
	_, err = w.Look(ctx) // which opens a connection
	must(t, err)
	counter.Reset()
	s, err := w.Look(ctx)
	must(t, err)
	if got := counter.ByName(); !reflect.DeepEqual(got, map[string]int{"EVALSHA": 3, "HGETALL": 2}) || counter.RoundTrips() != 2 {
		t.Errorf("a look cost %v in %d round trips", got, counter.RoundTrips())
	}
	if p := s.App.Streams[0].Processors[0]; p.Totals.Lag != 1 || len(p.Members) != 2 || !p.Members[1].Alive || s.App.Streams[0].Appended != 1 {
		t.Errorf("%+v", s.App)
	}
}
