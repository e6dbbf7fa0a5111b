package webhook

import (
	"strconv"
	"time"

	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/delivery"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/store"
)

// counts are what this process counts, of all buses of the app.
type counts struct {
	extension.Counters
	buses []*Bus // of the app, whose options commands take
}

func (c *counts) published(bus, topic string, s store.Sent) {
	if s.Err == nil && !s.Duplicate {
		c.Add(buses.Published, bus, topic)
	}
}

// answered counts a request that has ended.
func (c *counts) answered(bus string, batch *delivery.Batch, a *answer, now time.Time) {
	c.Add(buses.Requests, bus, strconv.Itoa(a.status))
	c.Observe(buses.Took, a.took, bus)
	if a.err == "" {
		c.AddMore(buses.Delivered, len(batch.Events), bus)
		c.Observe(buses.Delay, max(now.Sub(time.UnixMilli(batch.Events[0].ID.MS)), 0), bus)
	}
}
