// Recording lets two workers process numbered orders of four customers, ends one of them with
// kill -9, and draws what both printed at the times at which it came: the picture of the first page.
//
//	go run ./scripts/recording docs/images/takeover.svg
//
// It needs redis-server, of which it starts one of its own on a free port of the loopback
// interface, and takes some 15 seconds. It fails where an order is missing or out of order. The
// workers are processes of this program: `recording worker`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

// lease is how long the killed worker's partitions stay with it.
const lease = 2 * time.Second

// limit bounds the recording.
const limit = 30 * time.Second

type order struct {
	Customer string `json:"customer"`
	Number   int    `json:"number"` // of the customer's orders, from 1
}

func newApp(opts *runnel.Options) (*runnel.App, *runnel.Stream[order]) {
	app := runnel.New("shop", opts)
	orders := runnel.NewStream(app, "orders", func(o order) string { return o.Customer }, &runnel.StreamOptions{Partitions: 4})
	orders.Process("print", func(owned context.Context, events *runnel.Events[order]) error {
		fmt.Printf("owns partition %d\n", events.Partition())
		for o := range events.Records() {
			fmt.Println(o.Customer, o.Number)
		}
		fmt.Printf("releases partition %d\n", events.Partition())
		return nil
	}, &runnel.ProcessorOptions{Lease: lease})
	return app, orders
}

func main() {
	if len(os.Args) != 2 || os.Args[1] == "worker" {
		app, _ := newApp(nil)
		cli.Run(app)
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal("recording: ", err)
	}
}

func write(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r, err := record(ctx)
	if err != nil {
		return err
	}
	found, err := check(r)
	if err != nil {
		return fmt.Errorf("%w:\n%v", err, r.panes)
	}
	fmt.Println(found)
	return os.WriteFile(path, draw(r, found), 0o644)
}
