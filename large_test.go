// Large records share a room of limited size and do not wait for ever.

package runnel

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRoomForLargeRecordsIsShared(t *testing.T) {
	var l largeRecords
	a, b := l.hold(t.Context(), sharesOf(16<<20, 64<<20)), l.hold(t.Context(), sharesOf(48<<20, 64<<20))
	if a != sharesOfMax/4 || b != sharesOfMax*3/4 || sharesOf(1<<40, 64<<20) != sharesOfMax {
		t.Fatalf("two records hold %d and %d", a, b)
	}
	if l.holdNow(1) {
		t.Error("a third one has room")
	}
	began := make(chan int64)
	go func() { began <- l.hold(t.Context(), sharesOfMax/2) }()
	l.release(b)
	select {
	case c := <-began:
		l.release(c)
	case <-time.After(time.Minute):
		t.Fatal("there was room, but it was not given")
	}
	l.release(a)
	if !l.room.TryAcquire(roomShares) {
		t.Error("shares are missing")
	}
}

// A function that hangs stops its own partition only.
func TestLargeRecordsDoNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l largeRecords
		l.hold(t.Context(), roomShares)
		before := time.Now()
		if got := l.hold(t.Context(), 1); got != 0 || time.Since(before) != roomPatience {
			t.Errorf("held %d after %v", got, time.Since(before))
		}
	})
}
