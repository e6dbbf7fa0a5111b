package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestBook(t *testing.T) {
	tests := []struct {
		name     string
		bookings []Booking
		receipts []Receipt
		ignored  int
	}{
		{name: "nothing"},
		{
			name:     "balances add up",
			bookings: []Booking{{"ada", 100}, {"bob", 5}, {"ada", -30}},
			receipts: []Receipt{{"ada", 100}, {"bob", 5}, {"ada", 70}},
		},
		{
			// After an error the function is called anew: it has forgotten its
			// balances.
			name:     "an overdraft is passed over",
			bookings: []Booking{{"ada", 100}, {"ada", -101}, {"ada", 1}},
			receipts: []Receipt{{"ada", 100}, {"ada", 1}},
			ignored:  1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := register(runnel.New("ledger", nil))

			got := runneltest.Process(t, s.bookings, "book", tt.bookings...)

			if got.Err != nil || got.Ignored != tt.ignored || len(got.Acked) != len(tt.bookings) {
				t.Errorf("got %+v, want all acked and %d ignored", got, tt.ignored)
			}
			if receipts := runneltest.Sent(t, got, s.receipts); !slices.Equal(receipts, tt.receipts) {
				t.Errorf("receipts = %v, want %v", receipts, tt.receipts)
			}
		})
	}
}

func TestOverdraftIsNamed(t *testing.T) {
	s := register(runnel.New("ledger", nil))
	got := runneltest.Process(t, s.bookings, "book", Booking{"ada", -1})
	if len(got.IgnoredErrs) != 1 || !errors.Is(got.IgnoredErrs[0], errOverdrawn) {
		t.Errorf("ignored %v, want %v", got.IgnoredErrs, errOverdrawn)
	}
}
