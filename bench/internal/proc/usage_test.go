package proc

import (
	"testing"
	"time"
)

func TestUsageGrowsWithWhatIsUsed(t *testing.T) {
	cpu, memory := CPU(), Memory()
	kept := make([]byte, 32<<20)
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		for i := range kept[:4096] {
			kept[i]++
		}
	}
	if got := CPU() - cpu; got <= 0 {
		t.Errorf("50 ms of work took %v", got)
	}
	if got := Memory() - memory; got < 32<<20 || got > 64<<20 {
		t.Errorf("%d bytes for an object of 32 MiB", got)
	}
	if Peak() < 16<<20 {
		t.Errorf("at most %d bytes", Peak())
	}
	kept[0] = 0
}
