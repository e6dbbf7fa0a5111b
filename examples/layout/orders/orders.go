// Package orders owns the stream of orders.
package orders

import (
	"context"
	"time"

	"github.com/runnel-go/runnel"
)

// An Order is what a customer bought.
type Order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// Register adds the stream to app, and a task that orders something.
func Register(app *runnel.App) *runnel.Stream[Order] {
	placed := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
	app.Every("shopper", time.Second, func(ctx context.Context) error {
		return placed.Send(ctx, Order{"ada", 999})
	}, nil)
	return placed
}
