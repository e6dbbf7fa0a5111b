package webhook_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-go/runnel/webhook"
)

// When something happened says nothing about when it is sent: deadlines and retention count from the arrival.
func TestTimestampsDoNotCutBatches(t *testing.T) {
	year := 365 * 24 * time.Hour
	for name, tt := range map[string]struct {
		ago  []time.Duration // when events have happened
		want []int           // sizes of batches
		last time.Duration   // when the last of them comes
	}{
		"last year":           {[]time.Duration{year, year, year}, []int{3}, time.Second},
		"last year, complete": {[]time.Duration{year, year, year, year, year}, []int{5}, 0},
		"next year":           {[]time.Duration{-year, -year}, []int{2}, time.Second},
		"backwards":           {[]time.Duration{0, time.Hour, year, -year, 4 * 24 * time.Hour, 2 * year, 0}, []int{5, 2}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, &webhook.Options{Retention: 3 * 24 * time.Hour}, func(r *rig) {
				r.start("one")
				r.subscribe("mail", 5, time.Second, "orders")
				began := time.Now()
				var events []webhook.Event
				var happened []int64
				for i, ago := range tt.ago {
					at := began.Add(-ago)
					events = append(events, webhook.Event{Topic: "orders", Type: webhook.Update, URL: fmt.Sprint("https://x/orders/", i), T: at})
					happened = append(happened, at.UnixMilli())
				}
				_, err := r.bus.Publish(r.c.Context(), "shop", events...)
				r.must(err)
				time.Sleep(time.Minute)
				if got := r.sizes("mail"); !slices.Equal(got, tt.want) {
					t.Fatalf("batches of %v, want %v\n%s", got, tt.want, r.told.String())
				}
				all := r.of("mail")
				if took := all[len(all)-1].at.Sub(began); (took - tt.last).Abs() > 20*time.Millisecond {
					t.Errorf("the last batch comes after %v, want %v", took, tt.last)
				}
				var got []int64
				for _, one := range all {
					for _, e := range one.events {
						got = append(got, e.T)
					}
				}
				if !slices.Equal(got, happened) {
					t.Errorf("in order they have happened at %v, want %v", got, happened)
				}
			})
		})
	}
}
