package redistest

import (
	"testing"
	"time"
)

func TestClockOfAServerCanBeSet(t *testing.T) {
	s, clock := StartWithClock(t)
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "lease", "x", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []time.Duration{0, -time.Hour, time.Hour} {
		clock.Set(offset)
		before := time.Now().Add(-time.Millisecond)
		at, err := rdb.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if at = at.Add(-offset); at.Before(before) || at.After(time.Now()) {
			t.Errorf("with an offset of %v it is %v, want between %v and now", offset, at, before)
		}
	}
	if n := rdb.Exists(t.Context(), "lease").Val(); n != 0 {
		t.Error("a key outlives a step over its end")
	}
}
