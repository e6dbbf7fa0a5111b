// Middleware reports slow iterations, retries failed ones, and bounds each try.
//
//	go run ./examples/middleware worker --dev
package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/middleware"
)

type Payment struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

var errBusy = errors.New("ledger busy")

func main() {
	app := runnel.New("bank", &runnel.Options{
		Processor: runnel.ProcessorOptions{Middleware: []runnel.Middleware{slow(50 * time.Millisecond)}}, // of every processor
	})
	payments := runnel.NewStream(app, "payments", func(p Payment) string { return p.Account }, nil)

	payments.Process("post", post, &runnel.ProcessorOptions{
		Middleware: []runnel.Middleware{ // outermost first, inside the app's
			middleware.RetryInPlace(5, 100*time.Millisecond),
		},
		Timeout: 3 * time.Second,   // of each try
		OnError: runnel.Quarantine, // when five tries have failed
	})

	app.Every("pay", time.Second, func(ctx context.Context) error {
		return payments.Send(ctx, Payment{"acc-1", 500})
	}, nil)

	cli.Run(app)
}

// slow warns about iterations that take longer than limit, retries included.
func slow(limit time.Duration) runnel.Middleware {
	return func(next runnel.Handler) runnel.Handler {
		return func(ctx context.Context, b *runnel.Batch) error {
			began := time.Now()
			err := next(ctx, b) // one iteration of the processor's loop
			if took := time.Since(began); took > limit {
				slog.WarnContext(ctx, "slow", "took", took, "events", len(b.Events), "err", err)
			}
			return err
		}
	}
}

func post(ctx context.Context, events *runnel.Events[Payment]) error {
	for event, payment := range events.All() {
		if rand.N(4) == 0 {
			return errBusy // this payment is retried, with a new call of post
		}
		slog.InfoContext(events.Context(), "posted", "cents", payment.Cents, "attempt", event.Attempt)
	}
	return nil
}
