// What is told to be lost by position, where a refresh of the lease arrives late.

package conformance_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/test/redistest"
)

// A lateConn delays what refreshes leases.
type lateConn struct{ net.Conn }

func (c lateConn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "__beat:") {
		<-time.After(200 * time.Millisecond)
	}
	return c.Conn.Write(b)
}

func lateClient(t *testing.T, url string) *redis.Client {
	ro, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	ro.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
		return lateConn{c}, err
	}
	late := redis.NewClient(ro)
	t.Cleanup(func() { late.Close() })
	return late
}

// The whole partition is replaced between the moment at which a refresh is made and that at which the server sees it. What was read
// meanwhile, and then removed, is not lost; what nothing has read is.
func TestWhatIsReadMeanwhileIsNotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		overflow runnel.Overflow
		slow     time.Duration
	}{
		"block":                         {runnel.Block, 0},
		"drop the oldest":               {runnel.DropOldest, time.Millisecond},
		"drop more than can be handled": {runnel.DropOldest, 4 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			adjust := func(o *runnel.Options) {
				o.Stream = runnel.StreamOptions{Partitions: 1, MaxLen: 20, Overflow: tt.overflow}
				o.Processor.Reads, o.Processor.Lease = runnel.ByPosition, shortExpiry
			}
			a := newParcelApp(t, srv.URL(), "w1", func(o *runnel.Options) { adjust(o); o.Redis = lateClient(t, srv.URL()) })
			var mu sync.Mutex
			done := map[int64]int{}
			a.parcels.Process("check", runnel.Each(func(_ context.Context, _ *runnel.Event, p parcel) error {
				mu.Lock()
				done[p.Seq]++
				mu.Unlock()
				<-time.After(tt.slow)
				return nil
			}), nil)
			producer := newParcelApp(t, srv.URL(), "producer", adjust)
			a.run()
			ready(t, 30*time.Second, a)
			var sent int64
			for until := time.Now().Add(2 * shortExpiry); time.Now().Before(until); {
				sent += 3
				producer.send(parcel{"k", sent - 2, ""}, parcel{"k", sent - 1, ""}, parcel{"k", sent, ""})
				<-time.After(5 * time.Millisecond)
			}
			await(t, "what is missing to be told", 30*time.Second, func() bool {
				mu.Lock()
				missing := sent - int64(len(done))
				mu.Unlock()
				n, _ := srv.Client(t).HGet(t.Context(), "__own:post.parcels.check.0", "lost").Int64()
				return n == missing
			})
			if line := a.log.line("forgotten"); line != "" {
				t.Error(line)
			}
			mu.Lock()
			defer mu.Unlock()
			if sent != int64(len(done)) && tt.overflow == runnel.Block {
				t.Errorf("%d of %d were handled", len(done), sent)
			}
			t.Logf("%d sent, %d handled", sent, len(done))
		})
	}
}
