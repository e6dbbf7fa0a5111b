// Delayed reminds customers who have not paid: events that are sent now and
// processed later, and taken back when there is no need for them any more.
//
//	go run ./examples/delayed worker --dev
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Invoice struct {
	Customer string
	Number   int
}

type Reminder struct {
	Customer string
	Number   int
}

func main() {
	app := runnel.New("billing", nil)
	invoices := runnel.NewStream(app, "invoices", func(i Invoice) string { return i.Customer }, nil)
	reminders := runnel.NewStream(app, "reminders", func(r Reminder) string { return r.Customer }, nil)

	invoices.Process("remind", runnel.Each(func(ctx context.Context, e *runnel.Event, i Invoice) error {
		// As SendAfter, with an ID: an invoice that is processed again has one reminder.
		sent, err := reminders.SendEvents(ctx, runnel.Outgoing[Reminder]{Record: Reminder(i), After: 3 * time.Second, DedupID: e.SendID(0)})
		if err != nil {
			return err
		}
		if rand.IntN(2) == 0 {
			return nil
		}
		// The customer has paid. A reminder that is due already cannot be taken back.
		cancelled, err := reminders.Cancel(ctx, sent[0].ID)
		slog.Info("paid at once", "invoice", i.Number, "cancelled", cancelled)
		return err
	}), nil)

	reminders.Process("mail", runnel.Each(func(ctx context.Context, e *runnel.Event, r Reminder) error {
		fmt.Printf("dear %s, please pay invoice %d (due %v after it was sent)\n",
			r.Customer, r.Number, e.Due().Sub(e.Enqueued()).Round(time.Millisecond))
		return nil
	}), nil)

	number := 0
	app.Every("shop", time.Second, func(ctx context.Context) error {
		number++
		return invoices.Send(ctx, Invoice{[]string{"ada", "bob", "cyd"}[rand.N(3)], number})
	}, nil)

	cli.Run(app)
}
