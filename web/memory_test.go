package web

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/codec"
	"github.com/runnel-go/runnel/internal/test/tier"
)

// heapWhile returns the maximal growth of the heap while f runs.
func heapWhile(f func()) (most uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc-min(before, m.HeapAlloc))
		select {
		case <-done:
			return most
		case <-time.After(time.Millisecond):
		}
	}
}

// zeros returns JSON of n zeros, in a frame of a few kilobytes without a size.
func zeros(t *testing.T, n int) string {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("0", 1<<20)
	fmt.Fprint(w, `{"customer":"`)
	for range n >> 20 {
		fmt.Fprint(w, piece)
	}
	fmt.Fprint(w, `"}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (s *shop) all(paths ...string) {
	var wg sync.WaitGroup
	for _, path := range paths {
		wg.Go(func() {
			for s.t.Context().Err() == nil {
				resp, text := s.request(http.MethodGet, path, "")
				if resp.StatusCode == http.StatusGatewayTimeout || resp.StatusCode == http.StatusBadGateway {
					continue // a busy machine
				}
				if resp.StatusCode != http.StatusOK || len(text) > 4<<20 {
					s.t.Errorf("%s: %d, %d bytes", path, resp.StatusCode, len(text))
				}
				return
			}
		})
	}
	wg.Wait()
}

// Records may be large, or small and become large when decoded.
func TestAPageTakesLittleMemory(t *testing.T) {
	tier.Sequential(t)
	tier.Slow(t)
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever the environment says
	s := newShop(t, 8, nil)
	runnel.NewStream(s.app, "zs", func(o order) string { return o.Customer }, &runnel.StreamOptions{Codec: codec.Zstd(codec.JSON)})
	typed := runnel.New("shop", &runnel.Options{RedisURL: s.redis.URL()})
	zs := runnel.NewStream(typed, "zs", func(o order) string { return o.Customer }, &runnel.StreamOptions{Codec: codec.Zstd(codec.JSON)})
	s.must(zs.Send(t.Context(), order{Customer: "ada"}))
	defer typed.Close()
	k, rdb := s.c.Keys(), s.redis.Client(t)
	small, large := zeros(t, 60<<20), strings.Repeat("x", 5<<20)
	for i := range 30 {
		s.must(rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: k.Partition("zs", i%16), Values: []any{"data", small}}).Err())
		s.must(rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: k.Partition("orders", i%8), Values: []any{"data", large}}).Err())
		_, err := s.orders.SendAfter(t.Context(), time.Hour, order{Customer: fmt.Sprint(i), Note: large})
		s.must(err)
	}
	for path, bound := range map[string]uint64{
		"/api/events?stream=zs&limit=500":                 64 << 20,
		"/api/events?stream=zs&limit=500&key=ada":         64 << 20,
		"/api/events?stream=orders&limit=500":             384 << 20,
		"/api/events?stream=orders&limit=500&partition=3": 384 << 20,
		"/api/delayed?stream=orders&limit=500":            512 << 20,
	} {
		most := heapWhile(func() { s.all(path, path, path, path) })
		t.Logf("%s: %d MB", path, most>>20)
		if most > bound {
			t.Errorf("four times %s: %d MB", path, most>>20)
		}
	}
	if of := get[listedEvents](s, "/api/events?stream=zs&limit=500"); len(of.Events) != 31 || !strings.Contains(of.Events[0].Err, "too large") {
		t.Errorf("%d events, %+v", len(of.Events), of.Events[0])
	}
}
