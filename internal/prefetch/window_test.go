package prefetch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-go/runnel/internal/monotime"
)

// A slow function has about a second's worth of entries in memory, within the bounds.
func TestReadingAheadAdaptsToTheFunction(t *testing.T) {
	for _, tt := range []struct {
		name        string
		takes       time.Duration
		least, most int // entries held after a while
	}{
		{"none", 0, 128, 256},
		{"1 ms", time.Millisecond, 64, 256},
		{"20 ms", 20 * time.Millisecond, 8, 64},
		{"200 ms", 200 * time.Millisecond, 4, 16},
		{"5 s", 5 * time.Second, 4, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testBuffer(256, 1<<30)
				next, most := 1, 0
				for taken := range 2000 {
					if n, _ := b.Room(10, 256, monotime.Now()); n > 0 {
						b.Push(entries(next, next+n-1, 20))
						next += n
					}
					if held := b.queue.len(); taken > 1000 {
						most = max(most, held)
					}
					ids := mustTake(t, b, 1, 0)
					time.Sleep(tt.takes)
					b.Done(ids)
					b.TakeAcks(1, "")
					b.AcksConfirmed()
				}
				if most < tt.least || most > tt.most {
					t.Errorf("up to %d entries are read ahead, want %d to %d", most, tt.least, tt.most)
				}
			})
		})
	}
}

// A Prefetch below the minimum still is a bound, and a temporarily slow partition recovers.
func TestReadingAheadStaysWithinPrefetch(t *testing.T) {
	p := window{}
	for range 10 {
		p.got = 1000
		p.adapt(0, 3)
		if p.ahead != 3 {
			t.Fatalf("%d entries ahead of 3", p.ahead)
		}
	}
	for range 20 {
		p.got = 1000
		p.adapt(time.Minute, 100)
	}
	if p.ahead != leastAhead {
		t.Errorf("%d entries ahead of a function that takes minutes", p.ahead)
	}
	for range 20 {
		p.got = p.ahead
		p.adapt(0, 100)
	}
	if p.ahead != 100 {
		t.Errorf("%d entries ahead of a function that is fast again", p.ahead)
	}
}
