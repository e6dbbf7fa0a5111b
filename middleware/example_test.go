package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/middleware"
)

func ExampleDeadLetter() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	dead := middleware.DeadLetters(orders)
	orders.Process("p", runnel.Each(func(_ context.Context, _ *runnel.Event, o Order) error {
		if o.Amount < 0 {
			return errors.New("refunds are not orders")
		}
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.DeadLetter(dead)}})

	got := process(orders, Order{"ada", 1}, Order{"ada", -1}, Order{"bob", 2})
	for _, d := range letters(got, dead) {
		fmt.Println("dead:", d.Key, d.ID, d.Error)
	}
	// Output:
	// acked [1-0 2-0 3-0]
	// dead: ada 2-0 refunds are not orders
}

func ExampleRetryInPlace() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", runnel.Each(func(_ context.Context, e *runnel.Event, o Order) error {
		if e.Attempt < 3 {
			return errors.New("the printer is warming up")
		}
		fmt.Println(o.Customer, "at attempt", e.Attempt)
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.RetryInPlace(5, time.Millisecond)}})

	process(orders, Order{"ada", 1})
	// Output:
	// ada at attempt 3
	// acked [1-0]
}

func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "after" || a.Key == "worker" {
			return slog.Attr{}
		}
		return a
	}}))
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	orders.Process("p", runnel.Each(func(context.Context, *runnel.Event, Order) error { return nil }),
		&runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.Log(logger)}})

	process(orders, Order{"ada", 1})
	// Output:
	// level=INFO msg=processed events=1 stream=orders processor=p partition=0 event=0/1-0
	// acked [1-0]
}

func ExampleExpire() {
	app := runnel.New("shop", nil)
	offers := runnel.NewStream(app, "offers", customer, nil)
	offers.Process("p", runnel.Each(func(_ context.Context, _ *runnel.Event, o Order) error {
		fmt.Println("offer to", o.Customer)
		return nil
	}), &runnel.ProcessorOptions{Middleware: []runnel.Middleware{middleware.Expire(24 * time.Hour)}})

	process(offers, Order{"ada", 1}) // its entry ID says 1970
	// Output:
	// acked [1-0]
}
