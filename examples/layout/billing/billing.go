// Package billing turns orders into invoices.
package billing

import (
	"context"
	"fmt"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/examples/layout/orders"
)

// An Invoice says what a customer owes.
type Invoice struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// Register adds the stream of invoices to app, and what makes them of orders and
// prints them.
func Register(app *runnel.App, placed *runnel.Stream[orders.Order]) {
	invoices := runnel.NewStream(app, "invoices", func(i Invoice) string { return i.Customer }, nil)
	placed.Process("invoice", runnel.Each(func(ctx context.Context, e *runnel.Event, o orders.Order) error {
		// The ID is the same in every attempt, so that one order is one invoice.
		_, err := invoices.SendEvents(ctx, runnel.Outgoing[Invoice]{Record: Invoice{o.Customer, o.Cents}, DedupID: e.SendID(0)})
		return err
	}), nil)
	invoices.Process("print", runnel.Each(func(ctx context.Context, e *runnel.Event, i Invoice) error {
		fmt.Printf("invoice: %s owes %d cents\n", i.Customer, i.Cents)
		return nil
	}), nil)
}
