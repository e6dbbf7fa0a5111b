//go:build unix

package chaos

import "testing"

// TestFaults hurts workers, links and servers while everything succeeds.
func TestFaults(t *testing.T) {
	playOnEach(t, false)
}

// TestFaultsInDelivery is TestFaults where some events fail, some end their process,
// some are sent for later, everything is sent under an ID, and an operator holds
// partitions back.
func TestFaultsInDelivery(t *testing.T) {
	playOnEach(t, true)
}
