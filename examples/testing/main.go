// Testing is a ledger whose processor is tested without Redis; see
// ledger_test.go.
//
//	go test ./examples/testing
//	go run ./examples/testing worker --dev
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Booking struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

type Receipt struct {
	Account string `json:"account"`
	Balance int    `json:"balance"`
}

var errOverdrawn = errors.New("overdrawn")

// streams are what the ledger reads and writes.
type streams struct {
	bookings *runnel.Stream[Booking]
	receipts *runnel.Stream[Receipt]
}

// register adds the ledger to an app. Tests call it as main does.
func register(app *runnel.App) streams {
	s := streams{
		bookings: runnel.NewStream(app, "bookings", func(b Booking) string { return b.Account }, nil),
		receipts: runnel.NewStream(app, "receipts", func(r Receipt) string { return r.Account }, nil),
	}
	s.bookings.Process("book", s.book, &runnel.ProcessorOptions{OnError: runnel.Ignore})
	return s
}

// book keeps the balances of its partition and sends a receipt per booking.
func (s streams) book(ctx context.Context, events *runnel.Events[Booking]) error {
	balance := map[string]int{}
	for event, booking := range events.All() {
		if balance[booking.Account]+booking.Cents < 0 {
			return fmt.Errorf("book %d: %w", booking.Cents, errOverdrawn)
		}
		balance[booking.Account] += booking.Cents
		receipt := Receipt{booking.Account, balance[booking.Account]}
		once := runnel.Outgoing[Receipt]{Record: receipt, DedupID: event.SendID(0)} // a booking that is processed again has one receipt
		if _, err := s.receipts.SendEvents(events.Context(), once); err != nil {
			return err
		}
		fmt.Printf("%s has %d cents\n", receipt.Account, receipt.Balance)
	}
	return nil
}

func main() {
	app := runnel.New("ledger", nil)
	s := register(app)
	app.Every("deposits", time.Second, func(ctx context.Context) error {
		return s.bookings.Send(ctx, Booking{"ada", 100})
	}, nil)
	cli.Run(app)
}
