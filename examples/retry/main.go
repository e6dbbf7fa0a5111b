// Retry attempts payments again that a bank refused for the moment, in their
// order per customer, while those of other customers go on.
//
//	go run ./examples/retry worker --dev
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Payment struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

var (
	errBusy    = errors.New("the bank is busy")
	errUnknown = errors.New("no such account")
)

func main() {
	app := runnel.New("bank", nil)
	payments := runnel.NewStream(app, "payments", func(p Payment) string { return p.Customer }, nil)

	payments.Process("pay", runnel.Each(func(ctx context.Context, e *runnel.Event, p Payment) error {
		switch {
		case p.Customer == "nobody":
			return runnel.DeadLetter(errUnknown) // no other attempt helps
		case p.Customer == "ada" && e.Attempt < 3:
			return errBusy
		}
		fmt.Printf("attempt %d: %s paid %d cents\n", e.Attempt, p.Customer, p.Cents)
		return nil
	}), &runnel.ProcessorOptions{
		Retry: &runnel.Retry{
			Max:        5, // then it is a dead letter: see `dead ls payments/pay`
			MinBackoff: 200 * time.Millisecond, MaxBackoff: time.Minute,
			Order: runnel.OrderKey, // later payments of the customer wait, others do not
		},
	})

	app.Task("customers", func(ctx context.Context) error {
		return payments.Send(ctx, Payment{"ada", 100}, Payment{"bob", 200}, Payment{"ada", 300}, Payment{"nobody", 400})
	}, nil)

	cli.Run(app)
}
