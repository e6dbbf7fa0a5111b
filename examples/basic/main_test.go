package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

func TestRefusedChargeKeepsTheOrderOfItsCustomer(t *testing.T) {
	var charged []Order
	busy := 2 // that many times
	orders := register(runnel.New("shop", nil), func(ctx context.Context, o Order) error {
		if o.Customer == "ada" && busy > 0 {
			busy--
			return errors.New("the bank is busy")
		}
		charged = append(charged, o)
		return nil
	})

	got := runneltest.Process(t, orders, "charge", Order{"ada", 1}, Order{"bob", 2}, Order{"ada", 3})

	if got.Err != nil || len(got.Acked) != 3 || len(got.Dead) != 0 {
		t.Errorf("got %+v, want three acked events", got)
	}
	if want := []Order{{"bob", 2}, {"ada", 1}, {"ada", 3}}; !slices.Equal(charged, want) {
		t.Errorf("charged %v, want %v: bob does not wait for ada, and ada's orders keep their order", charged, want)
	}
}
