package web

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runnel-go/runnel/internal/inspect"

	"github.com/runnel-go/runnel/internal/test/redistest"
)

func TestLive(t *testing.T) {
	s := newShop(t, 2, &Options{Every: minEvery})
	s.must(s.orders.Send(t.Context(), order{Customer: "ada"}, order{Customer: "bob"}, order{Customer: "cyd"}))
	w := s.watch("?processor=orders/printer")
	hello := await(w, "hello", anything[greeting])
	if hello.App != "shop" || hello.Every != 500 || hello.Actions || hello.Memory.At == nil || hello.Memory.Moves == nil {
		t.Errorf("%+v", hello)
	}
	first := await(w, "sample", anything[shownApp])
	p := first.Streams[0].Processors[0]
	if p.Totals.Lag != 3 || p.Done != nil || first.Streams[0].Rate != nil || first.Detail == nil || len(first.Detail.Lag) != 2 || first.Detail.Lag[0]+first.Detail.Lag[1] != 3 {
		t.Errorf("%+v, %+v", first, first.Detail)
	}
	other := s.watch("")
	if second := await(other, "sample", anything[shownApp]); second.Detail != nil || second.Streams[0].Processors[0].Totals.Lag != 3 {
		t.Errorf("%+v", second)
	}
	s.must(s.orders.Send(t.Context(), order{Customer: "ada"}))
	now := await(w, "sample", func(a shownApp) bool { return a.Streams[0].Processors[0].Totals.Lag == 4 })
	if r := now.Streams[0].Rate; r == nil || *r <= 0 {
		t.Errorf("rate %v", r)
	}
	// A later watcher gets the past.
	later := await(s.watch(""), "hello", anything[greeting])
	if lags := later.Memory.Series["orders/printer"].Lag; len(lags) < 2 || *lags[0] != 3 || len(later.Memory.At) != len(lags) {
		t.Errorf("%+v", later.Memory)
	}
}

// The metrics of the app as a whole need no worker.
func TestTheDashboardServesMetrics(t *testing.T) {
	s := newShop(t, 2, nil)
	s.must(s.orders.Send(t.Context(), order{Customer: "ada"}))
	resp, text := s.request(http.MethodGet, "/metrics", "")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	for _, want := range []string{"members{%s} 0\n", "lag_events{%s} 1\n"} {
		if want = "\nrunnel_app_" + fmt.Sprintf(want, `app="shop",processor="printer",stream="orders"`); !strings.Contains(text, want) {
			t.Errorf("no %q in %d bytes", want, len(text))
		}
	}
}

// The cost of a look does not grow with the number of watchers. Without watchers no request is
// sent.
func TestWatchingIsCheap(t *testing.T) {
	s := newShop(t, 256, &Options{Every: minEvery})
	watched := []*watching{s.watch("?processor=orders/printer"), s.watch(""), s.watch("?processor=orders/printer")}
	var at int64
	for range 2 { // the first look finds streams and processors
		at = await(watched[0], "sample", anything[shownApp]).At
	}
	s.count.Reset()
	began := at
	for range 4 {
		at = await(watched[0], "sample", anything[shownApp]).At
	}
	// The fifth look may have begun.
	if got := s.count.ByName(); got["EVALSHA"] < 4*3 || got["EVALSHA"] > 5*3 || got["HGETALL"] < 4*2 || got["HGETALL"] > 5*2 || len(got) != 2 {
		t.Errorf("4 looks for 3 watchers cost %v", got)
	}
	if at-began < 4*minEvery.Milliseconds()*9/10 {
		t.Errorf("4 looks within %d ms", at-began)
	}
	for _, w := range watched {
		w.end()
	}
	d := s.server.Config.Handler.(*dashboard)
	eventually(t, "no page watches", func() bool { return d.hub.watchers() == 0 && len(d.hub.turn) == 0 })
	s.count.Reset()
	select {
	case <-time.After(3 * minEvery):
	case <-t.Context().Done():
	}
	if got := s.count.ByName(); len(got) > 0 {
		t.Errorf("without watchers: %v", got)
	}
}

func (h *hub) watchers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.viewers
}

// When the looking watcher leaves, another one takes over.
func TestTheTurnIsPassedOn(t *testing.T) {
	s := newShop(t, 1, &Options{Every: minEvery})
	first := s.watch("")
	await(first, "sample", anything[shownApp])
	second := s.watch("")
	await(second, "sample", anything[shownApp])
	first.end()
	seen := await(second, "sample", anything[shownApp]).At
	await(second, "sample", func(a shownApp) bool { return a.At > seen })
}

func TestTooManyWatch(t *testing.T) {
	s := newShop(t, 1, nil)
	for range maxViewers {
		s.watch("")
	}
	resp, text := s.request(http.MethodGet, "/api/live", "")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "too many pages") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
}

// A shutdown does not wait for watchers.
func TestShutdownEndsStreams(t *testing.T) {
	s := newShop(t, 1, nil)
	w := s.watch("")
	await(w, "sample", anything[shownApp])
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	if err := s.server.Config.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	for name := "some"; name != ""; {
		name, _ = w.next()
	}
	if d := s.server.Config.Handler.(*dashboard); d.hub.watchers() != 0 || len(d.hub.turn) != 0 {
		t.Error("a watcher still looks")
	}
}

// Redis may go and come back; errors about it contain no password.
func TestRedisIsAway(t *testing.T) {
	s := newShop(t, 1, &Options{Every: minEvery})
	w := s.watch("")
	await(w, "sample", anything[shownApp])
	s.redis.Kill()
	trouble := await(w, "trouble", anything[struct{ Err string }])
	resp, text := s.request(http.MethodGet, "/api/events?stream=orders", "")
	if resp.StatusCode != http.StatusBadGateway {
		t.Errorf("a list: %d %s", resp.StatusCode, text)
	}
	if told := trouble.Err + text; strings.Contains(told, "sesame") || trouble.Err == "" {
		t.Errorf("got %q", told)
	}
	s.redis.Restart()
	await(w, "sample", anything[shownApp])
}

func lookOf(at time.Duration, lag int64, owners ...string) *inspect.Sample {
	p := inspect.ProcessorState{Stream: "orders", Processor: "printer", Totals: inspect.Totals{Lag: lag}}
	for n, o := range owners {
		one := inspect.PartitionState{Partition: n, Worker: o, Epoch: 7}
		if o == "?" {
			one = inspect.PartitionState{Partition: n, Err: "wrong type"}
		}
		p.Partitions = append(p.Partitions, one)
	}
	return &inspect.Sample{
		App:   &inspect.AppState{At: time.UnixMilli(1_767_225_600_000).Add(at), Streams: []inspect.StreamState{{Stream: "orders", Processors: []inspect.ProcessorState{p}}}},
		Rates: []inspect.StreamRates{{Stream: "orders", Processors: []inspect.ProcessorRates{{Processor: "printer", Partitions: make([]*float64, len(owners))}}}},
	}
}

func TestMovesAreNoticed(t *testing.T) {
	var p past
	at := int64(1_767_225_600_000)
	for _, step := range []struct {
		sample *inspect.Sample
		want   []move
	}{
		{lookOf(0, 0, "alpha", "alpha"), nil},
		{lookOf(1*time.Second, 0, "alpha", "beta"), []move{{at + 1000, "orders/printer", 1, "alpha", "beta", 7}}},
		{lookOf(2*time.Second, 0, "alpha", "?"), nil},
		{lookOf(3*time.Second, 0, "", "beta"), []move{{at + 3000, "orders/printer", 0, "alpha", "", 7}}},
		{lookOf(4*time.Second, 0, "gamma", "gamma"), []move{{at + 4000, "orders/printer", 0, "", "gamma", 7}, {at + 4000, "orders/printer", 1, "beta", "gamma", 7}}},
	} {
		if got := p.add(step.sample); !reflect.DeepEqual(got, step.want) {
			t.Errorf("got %+v, want %+v", got, step.want)
		}
	}
	if m := p.memory(); len(m.Moves) != 4 {
		t.Errorf("%+v", m.Moves)
	}
}

func TestThePastIsBounded(t *testing.T) {
	var p past
	for i := range 2 * pastPoints {
		p.add(lookOf(time.Duration(i)*500*time.Millisecond, int64(i), fmt.Sprint(i)))
	}
	m := p.memory()
	if n := len(m.At); n != pastPoints || len(m.Moves) != pastMoves || len(m.Series["orders/printer"].Lag) != n || *m.Series["orders/printer"].Lag[n-1] != 2*pastPoints-1 {
		t.Errorf("%d points, %d moves", n, len(m.Moves))
	}
	p.add(lookOf(24*time.Hour, 1, "alpha"))
	if m := p.memory(); len(m.At) != 1 {
		t.Errorf("%d points a day later", len(m.At))
	}
}

func TestRatesAfterAPause(t *testing.T) {
	h := newHub(minEvery, nil)
	rate := 2.5
	sample := func() *inspect.Sample {
		s := lookOf(0, 0, "alpha")
		s.Rates[0].Appended, s.Rates[0].Processors[0].Done = &rate, &rate
		return s
	}
	now := time.Now()
	h.publish(now.Add(-time.Second), sample(), nil)
	h.publish(now.Add(-minEvery), sample(), nil)
	if f, _ := h.current(); f.shown("").Streams[0].Rate == nil {
		t.Error("no rate between two looks")
	}
	h.publish(now.Add(time.Minute), sample(), nil)
	if f, _ := h.current(); f.shown("").Streams[0].Rate != nil || f.shown("").Streams[0].Processors[0].Done != nil {
		t.Error("a rate over a minute")
	}
}

// A sample of a thousand partitions is small enough to be sent every two seconds.
func TestSamplesAreSmall(t *testing.T) {
	owners := make([]string, 1024)
	for n := range owners {
		owners[n] = fmt.Sprint("worker-", n%40)
	}
	s := lookOf(0, 1024*12345, owners...)
	for n := range s.App.Streams[0].Processors[0].Partitions {
		p, rate := &s.App.Streams[0].Processors[0].Partitions[n], 123.456
		p.Lag, p.Pending, p.Age, p.Epoch, p.LockLeft, p.Length = 12345, 64, 98765, 1_767_225_600_000, 9876, 45678
		s.Rates[0].Processors[0].Partitions[n] = &rate
	}
	f := &frame{sample: s}
	with, err := f.encoded("orders/printer")
	if err != nil || len(with) > 64<<10 {
		t.Errorf("%d bytes, %v", len(with), err)
	}
	without, err := f.encoded("")
	if err != nil || len(without) > 2<<10 {
		t.Errorf("%d bytes without partitions, %v", len(without), err)
	}
	t.Logf("%d bytes with partitions, %d without", len(with), len(without))
}
