// Shop is an app for the tests of the command line.
package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	Customer string `json:"customer"`
	Do       string `json:"do"`
}

func main() {
	app := runnel.New("shop", nil)
	orders := runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil)
	orders.Process("printer", func(ctx context.Context, events *runnel.Events[Order]) error {
		for o := range events.Records() {
			slog.InfoContext(events.Context(), "order", "customer", o.Customer, "do", o.Do)
			switch o.Do {
			case "panic":
				panic("boom")
			case "fail":
				return errors.New("no paper\nno ink")
			case "hang":
				<-make(chan struct{})
			}
		}
		return nil
	}, nil)
	cli.Run(app)
}
