package cron

import (
	"testing"
	"time"
)

// FuzzCron reads anything as a crontab line. What is taken has a next time, and
// then another one, each later than the one before.
func FuzzCron(f *testing.F) {
	for _, spec := range []string{"* * * * *", "0 0 31 2 *", "0 0 29 2 *", "@hourly", "@every 90s", "@every -1s", "@every", "TZ=", "TZ=UTC", "CRON_TZ=Asia/Tokyo 0 3 * * MON-FRI", "*/0 * * * *", "60 * * * *", "1-0 * * * *", "? ? ? ? ?"} {
		f.Add(spec)
	}
	from := time.Date(2026, 3, 1, 12, 30, 15, 0, time.FixedZone("", 19800))
	f.Fuzz(func(t *testing.T, spec string) {
		schedule, err := Parse(spec)
		if err != nil {
			return
		}
		for at, n := from, 0; n < 3; n++ {
			next := schedule.Next(at)
			if !next.After(at) {
				t.Fatalf("%q: %v after %v", spec, next, at)
			}
			at = next
		}
	})
}
