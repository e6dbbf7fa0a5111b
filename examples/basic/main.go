// Basic adds up what customers spend, in order per customer.
//
//	go run ./examples/basic worker --dev
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	Customer string    `json:"customer"`
	Amount   float64   `json:"amount"`
	Created  time.Time `json:"created"`
}

func main() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)

	orders.Process("printer", func(owned context.Context, events *runnel.Events[Order]) error {
		total := map[string]float64{} // this partition's state, for as long as we own it
		for order := range events.Records() {
			total[order.Customer] += order.Amount
			fmt.Printf("%s has spent %.2f\n", order.Customer, total[order.Customer])
		} // acked here, when the loop comes round
		return nil
	}, nil)

	app.Every("sender", time.Second, func(ctx context.Context) error {
		customer := []string{"ada", "bob", "cyd"}[rand.N(3)]
		return orders.Send(ctx, Order{customer, 9.99, time.Now()})
	}, nil)

	cli.Run(app)
}
