package main

import (
	"testing"
	"time"

	"github.com/runnel-go/runnel/runneltest"
)

// A listing is geocoded, though the geocoder fails now and then, checked, priced, and closed when it expires.
func TestListingsAreClosedInTheEnd(t *testing.T) {
	for range 3 { // one of them fails at first
		_, listings := newApp(time.Hour)
		got := runneltest.Settle(t, listings, Listing{ID: "1", Address: "1 Main St", Photos: 2, Expires: time.Now().Add(time.Hour)})
		if l := got.Value; l.Place != "place of 1 Main St" || l.Checked != 2 || l.Price != 30 || !l.Closed {
			t.Errorf("%+v after %+v", l, got.Visits)
		}
		if last := got.Visits[len(got.Visits)-1]; last.Stage != "close" || last.At < 59*time.Minute {
			t.Errorf("closed by %+v", last)
		}
	}
}
