package worker

import (
	"testing"
	"time"
)

func TestAStepOfTheServersClockIsSeen(t *testing.T) {
	const now = 1_767_225_600_000 // ms
	second := int64(time.Second)
	for _, tt := range []struct {
		name          string
		server        int64 // at the second look, ms
		sent, replied int64 // s
		want          time.Duration
	}{
		{"it goes on", now + 10_000, 10, 10, 0},
		{"a reply that took long", now + 14_000, 10, 14, 0},
		{"slewed", now + 10_900, 10, 10, 0},
		{"set forward", now + 3_610_000, 10, 10, time.Hour},
		{"set back", now - 3_590_000, 10, 10, -time.Hour},
		{"no answer", 0, 10, 10, 0},
	} {
		b := &latencyBook{}
		if step := b.sync(now, 0, 0); step != 0 {
			t.Errorf("the first look: %v", step)
		}
		if step := b.sync(tt.server, tt.sent*second, tt.replied*second); step != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, step, tt.want)
		}
	}
}
