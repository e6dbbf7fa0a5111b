package window_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/window"
)

type Order struct {
	Customer string
	Amount   float64
}

type Minute struct {
	Customer string
	Begins   time.Time
	Amount   float64
}

// What each customer spends in a minute, as a record of another stream.
func ExampleTumbling() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
	minutes := runnel.NewStream(app, "minutes", func(m Minute) string { return m.Customer }, nil)

	window.Tumbling(orders, "per-minute", time.Minute,
		func(sum float64, o Order) float64 { return sum + o.Amount },
		func(ctx context.Context, w window.Window[float64]) error {
			return minutes.Emit(ctx, Minute{w.Key, w.Start, w.Value})
		}, nil)
	fmt.Println("app.Run, or cli.Run, starts the worker")
	// Output: app.Run, or cli.Run, starts the worker
}
