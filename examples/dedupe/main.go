// Dedupe passes each payment on once, by its ID, though a bank tells of some of them twice. The
// ID is stored in one step with the payment that is passed on, so that a crash between the two
// neither loses a payment nor doubles it.
//
//	go run ./examples/dedupe worker --dev
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Payment struct {
	ID      string `json:"id"` // unique within the account
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

type bank struct {
	told, payments *runnel.Stream[Payment]
	seen           *runnel.Table[bool]
}

// register adds the stream of what the bank tells to app, and the processor that makes payments of it.
func register(app *runnel.App) bank {
	account := func(p Payment) string { return p.Account }
	b := bank{
		told:     runnel.NewStream(app, "told", account, nil),
		payments: runnel.NewStream(app, "payments", account, nil),
	}
	b.seen = runnel.NewTable[bool](b.told, "seen", &runnel.TableOptions{
		Local: true,           // the key of a row is no key of the stream
		TTL:   24 * time.Hour, // the bank repeats nothing after that
	})
	b.told.Process("dedupe", runnel.Each(b.pass), &runnel.ProcessorOptions{Tables: []runnel.State{b.seen}})
	return b
}

func (b bank) pass(ctx context.Context, _ *runnel.Event, p Payment) error {
	rows, id := b.seen.Rows(ctx), p.Account+"/"+p.ID
	if _, again := rows.Get(id); again {
		return nil
	}
	rows.Set(id, true)
	return b.payments.Emit(ctx, p) // in the stream together with the row, or not at all
}

func main() {
	app := runnel.New("bank", nil)
	b := register(app)
	b.payments.Process("book", runnel.Each(func(_ context.Context, _ *runnel.Event, p Payment) error {
		fmt.Printf("payment %s: %s paid %d cents\n", p.ID, p.Account, p.Cents)
		return nil
	}), nil)
	app.Every("bank", time.Second, func(ctx context.Context) error {
		p := Payment{time.Now().Format("150405"), "ada", 999}
		return b.told.Send(ctx, p, p)
	}, nil)
	cli.Run(app)
}
