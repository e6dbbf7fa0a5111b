// Examples of loops over events.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/runneltest"
)

// Order is the record of the examples.
type Order struct {
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
}

func customer(o Order) string { return o.Customer }

// exampleT stands in for the *testing.T that an example has not.
type exampleT struct{ testing.TB }

func (exampleT) Helper()                  {}
func (exampleT) Context() context.Context { return context.Background() }

// process lets a registered processor run over orders and prints what it acked.
func process(orders *runnel.Stream[Order], name string, records ...Order) {
	got := runneltest.Process(exampleT{}, orders, name, records...)
	fmt.Println("acked", got.Acked)
}

// The variables before the loop are the state of one partition, for as long as
// this worker owns it. An event is acked when the loop asks for the next one.
func ExampleStream_Process() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("totals", func(ctx context.Context, events *runnel.Events[Order]) error {
		total := map[string]float64{}
		for order := range events.Records() {
			total[order.Customer] += order.Amount
			fmt.Println(order.Customer, total[order.Customer])
		}
		return nil
	}, nil)

	process(orders, "totals", Order{"ada", 5}, Order{"bob", 1}, Order{"ada", 2.5})
	// Output:
	// ada 5
	// bob 1
	// ada 7.5
	// acked [1-0 2-0 3-0]
}

func ExampleEach() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("printer", runnel.Each(func(ctx context.Context, e *runnel.Event, order Order) error {
		fmt.Println(e.ID, order.Customer)
		return nil
	}), nil)

	process(orders, "printer", Order{"ada", 5}, Order{"bob", 1})
	// Output:
	// 1-0 ada
	// 2-0 bob
	// acked [1-0 2-0]
}

// A batch is yielded when it is full, or some time after its first event
// arrived; here no more events follow.
func ExampleEvents_Take() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("bulk", func(ctx context.Context, events *runnel.Events[Order]) error {
		for batch := range events.Take(2, 0).Records() {
			fmt.Println(len(batch), "orders")
		}
		return nil
	}, nil)

	process(orders, "bulk", Order{"ada", 5}, Order{"bob", 1}, Order{"ada", 2})
	// Output:
	// 2 orders
	// 1 orders
	// acked [1-0 2-0 3-0]
}

// Only the refund failed: the two others are acked, whatever follows.
func ExampleFailedEvents() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("bulk", runnel.EachBatch(10, 0, func(ctx context.Context, events []*runnel.Event, batch []Order) error {
		var failed []*runnel.Event
		for i, order := range batch {
			if order.Amount < 0 {
				failed = append(failed, events[i])
			}
		}
		return runnel.FailedEvents(errors.New("refunds are not orders"), failed...)
	}), nil)

	process(orders, "bulk", Order{"ada", 5}, Order{"ada", -5}, Order{"bob", 1})
	// Output: acked [1-0 3-0]
}

// A middleware wraps the call of each batch.
func ExampleMiddleware() {
	only := func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			if b.Events[0].Key() != "ada" {
				return nil // acked without being processed
			}
			return next(ctx, b)
		}
	}
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("ada", runnel.Each(func(ctx context.Context, _ *runnel.Event, order Order) error {
		fmt.Println(order.Customer, order.Amount)
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{only}})

	process(orders, "ada", Order{"ada", 5}, Order{"bob", 1})
	// Output:
	// ada 5
	// acked [1-0 2-0]
}
