// Totals keeps what each customer has spent, in a table. The row of a customer is stored in one
// step with the position behind the order, so that each order counts once, whatever dies when.
//
//	go run ./examples/totals worker --dev
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
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// Spent is the row of a customer.
type Spent struct {
	Orders int `json:"orders"`
	Cents  int `json:"cents"`
}

type shop struct {
	orders *runnel.Stream[Order]
	totals *runnel.Table[Spent]
}

// register adds the stream of orders to app, and the processor that adds them up.
func register(app *runnel.App) shop {
	s := shop{orders: runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)}
	s.totals = runnel.NewTable[Spent](s.orders, "totals", nil)
	s.orders.Process("total", s.total, &runnel.ProcessorOptions{Tables: []runnel.State{s.totals}})
	return s
}

func (s shop) total(owned context.Context, events *runnel.Events[Order]) error {
	rows := s.totals.Rows(owned)
	for order := range events.Records() {
		rows.Update(order.Customer, func(row Spent) Spent {
			return Spent{row.Orders + 1, row.Cents + order.Cents}
		})
	} // row and position are stored here, when the loop comes round
	return nil
}

func main() {
	app := runnel.New("shop", nil)
	s := register(app)
	app.Every("shoppers", time.Second, func(ctx context.Context) error {
		return s.orders.Send(ctx, Order{"ada", 1 + rand.N(500)}, Order{"bob", 1 + rand.N(500)})
	}, nil)
	app.Every("report", time.Second, func(ctx context.Context) error {
		row, ok, err := s.totals.Get(ctx, "ada") // what is stored, from any process
		if ok {
			fmt.Printf("ada has spent %d cents on %d orders\n", row.Cents, row.Orders)
		}
		return err
	}, nil)
	cli.Run(app)
}
