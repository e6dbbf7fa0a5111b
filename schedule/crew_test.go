package schedule

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// TestACrewClosesWhileOwnersLook: an owner that looks while a crew closes has reserved nothing, and what is waited for is not counted
// anew.
func TestACrewClosesWhileOwnersLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c := newCrew(nil, 4)
			last, other := &owner{}, &owner{asks: fewestAsked}
			last.asks = 2
			most, _ := c.reserve(last)
			var closing sync.WaitGroup
			closing.Go(func() { c.close(time.Minute) })
			synctest.Wait() // for the reserved places
			if n, _ := c.reserve(other); n != 0 {
				t.Fatalf("%d places reserved in a crew that closes", n)
			}
			began := time.Now()
			c.begin(last, &ischedule.Take{Most: most}, began, true, nil) // with no runs
			c.begin(other, &ischedule.Take{}, began, true, nil)
			closing.Wait()
			if waited := time.Since(began); waited != 0 || c.free != 4 {
				t.Fatalf("closed %v behind the end of the last run, with %d of 4 places free", waited, c.free)
			}
		}
	})
}
