// Fanout makes an invoice and a parcel per item of each order: one event causes several sends.
// They are idempotent, so that an order that is processed again, after a crash or an error,
// causes nothing twice.
//
//	go run ./examples/fanout worker --dev
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Order struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
}

type Invoice struct {
	Order string `json:"order"`
	Items int    `json:"items"`
}

type Parcel struct {
	Order string `json:"order"`
	Item  string `json:"item"`
}

// streams are what the shop reads and writes.
type streams struct {
	orders   *runnel.Stream[Order]
	invoices *runnel.Stream[Invoice]
	parcels  *runnel.Stream[Parcel]
}

// register adds the streams to app, and the processor that fans out.
func register(app *runnel.App) streams {
	s := streams{
		orders:   runnel.NewStream(app, "orders", func(o Order) string { return o.ID }, nil),
		invoices: runnel.NewStream(app, "invoices", func(i Invoice) string { return i.Order }, nil),
		parcels:  runnel.NewStream(app, "parcels", func(p Parcel) string { return p.Order }, nil),
	}
	s.orders.Process("fanout", s.fanOut, &runnel.ProcessorOptions{Retry: &runnel.Retry{Max: 10}})
	return s
}

// fanOut gives each thing that it sends for an event a number of its own, the same one whenever
// the event is processed.
func (s streams) fanOut(owned context.Context, events *runnel.Events[Order]) error {
	for event, order := range events.All() {
		invoice := runnel.Outgoing[Invoice]{Record: Invoice{order.ID, len(order.Items)}, DedupID: event.SendID(0)}
		if _, err := s.invoices.SendEvents(events.Context(), invoice); err != nil {
			return err
		}
		var parcels []runnel.Outgoing[Parcel]
		for i, item := range order.Items {
			parcels = append(parcels, runnel.Outgoing[Parcel]{Record: Parcel{order.ID, item}, DedupID: event.SendID(1 + i)})
		}
		if _, err := s.parcels.SendEvents(events.Context(), parcels...); err != nil {
			return err
		}
	}
	return nil
}

// handle adds the processors of what comes out, which tell done.
func (s streams) handle(done func(what string)) {
	s.invoices.Process("print", runnel.Each(func(_ context.Context, _ *runnel.Event, i Invoice) error {
		done(fmt.Sprintf("invoice for %d items of order %s", i.Items, i.Order))
		return nil
	}), nil)
	s.parcels.Process("ship", runnel.Each(func(_ context.Context, _ *runnel.Event, p Parcel) error {
		done(fmt.Sprintf("parcel with %s of order %s", p.Item, p.Order))
		return nil
	}), nil)
}

func main() {
	app := runnel.New("shop", nil)
	s := register(app)
	s.handle(func(what string) { fmt.Println(what) })
	app.Every("shopper", time.Second, func(ctx context.Context) error {
		return s.orders.Send(ctx, Order{time.Now().Format("15:04:05"), []string{"ink", "paper"}})
	}, nil)
	cli.Run(app)
}
