// Basic charges customers for what they order, in order per customer.
//
//	go run ./examples/basic worker --dev
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}

// register adds the stream of orders to app, and the processor that charges for them.
func register(app *runnel.App, charge func(context.Context, Order) error) *runnel.Stream[Order] {
	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
	orders.Process("charge", func(owned context.Context, events *runnel.Events[Order]) error {
		for order := range events.Records() {
			if err := charge(events.Context(), order); err != nil {
				return err // attempted again, while the customer's later orders wait
			}
		} // acked here, when the loop comes round
		return nil
	}, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 5, Order: runnel.OrderKey}})
	return orders
}

// bank stands for a request to a bank, which is busy at times.
func bank(ctx context.Context, o Order) error {
	if rand.N(5) == 0 {
		return errors.New("the bank is busy")
	}
	fmt.Printf("charged %s %.2f\n", o.Customer, o.Amount)
	return nil
}

func main() {
	app := runnel.New("shop", nil)
	orders := register(app, bank)
	app.Every("shoppers", time.Second, func(ctx context.Context) error {
		return orders.Send(ctx, Order{[]string{"ada", "bob", "cyd"}[rand.N(3)], 9.99})
	}, nil)
	cli.Run(app)
}
