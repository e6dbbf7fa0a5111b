// A backoff grows to its cap and stays within its bounds.

package runnel

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestBackoffGrowsToItsCap(t *testing.T) {
	b := &Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: 2 * time.Second, Factor: 3, Jitter: -1}
	for i, want := range []time.Duration{100, 300, 900, 2000, 2000} {
		if got := b.wait(i+1, 0.3); got != want*time.Millisecond {
			t.Errorf("after %d attempts %v, want %v", i+1, got, want*time.Millisecond)
		}
	}
	if got := (&Retry{}).wait(1, 0.5); got != time.Second {
		t.Errorf("by default %v after the first", got)
	}
	if got := (&Retry{}).wait(1000, 0.5); got != 5*time.Minute {
		t.Errorf("by default %v after the thousandth", got)
	}
}

// Whatever the settings: no wait is negative or above the cap, the jitter stays
// within its part, and without it no wait is shorter than the one before.
func TestBackoffStaysInBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		b := Retry{
			MinBackoff: time.Duration(1 + r.Int64N(int64(time.Hour))), MaxBackoff: time.Duration(1 + r.Int64N(int64(time.Hour))),
			Factor: 1 + 9*r.Float64(), Jitter: 0.001 + 0.999*r.Float64(),
		}
		plain := b
		plain.Jitter = -1
		n := 1 + r.IntN(200)
		base, got := plain.wait(n, 0), b.wait(n, r.Float64())
		off := math.Abs(float64(got - base))
		if got < 0 || got > b.MaxBackoff || off > b.Jitter*float64(base)+1 {
			t.Fatalf("%+v: %v after %d attempts, without jitter %v", b, got, n, base)
		}
		if n > 1 && plain.wait(n-1, 0) > base {
			t.Fatalf("%+v: shorter after %d attempts", b, n)
		}
	}
}
