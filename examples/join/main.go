// Join brings orders and payments together, which come in streams and in an order of their own.
// Both are emitted into one stream whose key is the order's ID. There a table holds the half of a
// pair that came first, until the other half comes.
//
//	go run ./examples/join worker --dev
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
}

type Payment struct {
	Account string `json:"account"`
	Order   string `json:"order"` // its ID
	Cents   int    `json:"cents"`
}

// A Pair is an order and its payment, or one of them so far.
type Pair struct {
	ID      string   `json:"id"` // of the order
	Order   *Order   `json:"order,omitempty"`
	Payment *Payment `json:"payment,omitempty"`
}

type shop struct {
	orders   *runnel.Stream[Order]
	payments *runnel.Stream[Payment]
	halves   *runnel.Stream[Pair]
	paid     *runnel.Stream[Pair]
	waiting  *runnel.Table[Pair]
}

// register adds the streams to app, and the processors that bring them together.
func register(app *runnel.App) shop {
	id := func(p Pair) string { return p.ID }
	s := shop{
		orders:   runnel.NewStream(app, "orders", func(o Order) string { return o.Customer }, nil),
		payments: runnel.NewStream(app, "payments", func(p Payment) string { return p.Account }, nil),
		halves:   runnel.NewStream(app, "halves", id, nil),
		paid:     runnel.NewStream(app, "paid", id, nil),
	}
	s.waiting = runnel.NewTable[Pair](s.halves, "waiting", &runnel.TableOptions{TTL: 30 * 24 * time.Hour})

	runnel.Forward(s.orders, "halve", s.halves, func(o Order) Pair { return Pair{ID: o.ID, Order: &o} }, nil)
	runnel.Forward(s.payments, "halve", s.halves, func(p Payment) Pair { return Pair{ID: p.Order, Payment: &p} }, nil)
	s.halves.Process("join", runnel.Each(s.join), &runnel.ProcessorOptions{Tables: []runnel.State{s.waiting}})
	return s
}

func (s shop) join(ctx context.Context, _ *runnel.Event, half Pair) error {
	rows := s.waiting.Rows(ctx)
	pair, _ := rows.Get(half.ID)
	pair.ID = half.ID
	if half.Order != nil {
		pair.Order = half.Order
	}
	if half.Payment != nil {
		pair.Payment = half.Payment
	}
	if pair.Order == nil || pair.Payment == nil {
		rows.Set(half.ID, pair)
		return nil
	}
	rows.Delete(half.ID)
	return s.paid.Emit(ctx, pair)
}

func main() {
	app := runnel.New("shop", nil)
	s := register(app)
	s.paid.Process("ship", runnel.Each(func(_ context.Context, _ *runnel.Event, p Pair) error {
		fmt.Printf("order %s of %s is paid: %d cents\n", p.ID, p.Order.Customer, p.Payment.Cents)
		return nil
	}), nil)
	app.Every("shoppers", time.Second, func(ctx context.Context) error {
		id := time.Now().Format("150405")
		if err := s.payments.Send(ctx, Payment{"bank of ada", id, 999}); err != nil {
			return err
		}
		return s.orders.Send(ctx, Order{id, "ada"})
	}, nil)
	cli.Run(app)
}
