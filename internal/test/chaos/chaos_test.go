//go:build unix

package chaos

import "testing"

// TestFaults hurts workers, links and servers while everything succeeds.
func TestFaults(t *testing.T) {
	playOnEach(t, false)
}

// TestFaultsInDelivery is TestFaults with events that fail, end their process, or are delayed, with
// an ID on every event, and with operators who pause partitions.
func TestFaultsInDelivery(t *testing.T) {
	playOnEach(t, true)
}
