// Examples of sending and of retries.

package runnel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/embedded"
)

// serve starts a server for an example.
func serve() (url string, stop func()) {
	srv, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return "redis://" + srv.Addr(), srv.Close
}

// An event that is due later can be cancelled until then, by the ID that sending
// it returned.
func ExampleStream_SendAfter() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	defer app.Close()
	reminders := runnel.NewStream(app, "reminders", customer, nil)

	sent, err := reminders.SendAfter(ctx, 72*time.Hour, Order{Customer: "ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		was, err := reminders.Cancel(ctx, sent[0].ID)
		fmt.Println(was, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// What is sent twice under one ID is appended once.
func ExampleOutgoing() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	defer app.Close()
	orders := runnel.NewStream(app, "orders", customer, nil)

	once := runnel.Outgoing[Order]{Record: Order{Customer: "ada"}, DedupID: "checkout-7"}
	first, err := orders.SendEvents(ctx, once)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := orders.SendEvents(ctx, once)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first[0].Duplicate, again[0].Duplicate, again[0].ID == first[0].ID)
	// Output: false true true
}

// A function that is called again for its event, after a failure or by the next owner,
// sends nothing twice.
func ExampleEvent_SendID() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	invoices := runnel.NewStream(app, "invoices", customer, &runnel.StreamOptions{Partitions: 1})
	orders.Process("bill", runnel.Each(func(ctx context.Context, e *runnel.Event, o Order) error {
		sent, err := invoices.SendEvents(ctx, runnel.Outgoing[Order]{Record: o, DedupID: e.SendID(0)})
		if err != nil {
			return err
		}
		fmt.Println(o.Customer, "attempt", e.Attempt, "duplicate:", sent[0].Duplicate)
		if e.Attempt == 1 && o.Customer == "ada" {
			return errors.New("the printer is out of paper")
		}
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 5}})

	process(orders, "bill", Order{"ada", 5}, Order{"eve", 1})
	// Output:
	// ada attempt 1 duplicate: false
	// ada attempt 2 duplicate: true
	// eve attempt 1 duplicate: false
	// acked [1-0 2-0]
}

// A function says of an error what should follow. Eve's order is a dead letter.
func ExampleRetryAfter() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", customer, nil)
	errBusy, errClosed := errors.New("busy"), errors.New("account closed")
	orders.Process("charge", runnel.Each(func(ctx context.Context, e *runnel.Event, o Order) error {
		switch {
		case o.Amount > 100 && e.Attempt == 1:
			return runnel.RetryAfter(errBusy, time.Minute) // whatever the Backoff says
		case o.Customer == "eve":
			return runnel.DeadLetter(errClosed) // another attempt would not help
		case o.Amount == 0:
			return runnel.Drop(errors.New("nothing to charge")) // not worth a dead letter
		}
		fmt.Println("charged", o.Customer, "at attempt", e.Attempt)
		return nil
	}), &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 5, Order: runnel.OrderKey}})

	process(orders, "charge", Order{"ada", 5}, Order{"eve", 1}, Order{"bob", 0})
	// Output:
	// charged ada at attempt 1
	// acked [1-0 3-0]
}

// A durable task runs once for each of its times that was missed, whichever worker
// leads.
func ExampleTaskOptions() {
	app := runnel.New("shop", nil)
	app.Cron("bill", "@daily", func(ctx context.Context) error {
		day := runnel.DueTime(ctx).AddDate(0, 0, -1)
		fmt.Println("bill what was ordered on", day.Format(time.DateOnly))
		return nil
	}, &runnel.TaskOptions{Leader: true, Durable: true, CatchUp: runnel.CatchUpAll})
}
