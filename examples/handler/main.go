// Handler processes events with a function per event, or per batch, instead of a
// loop. The same machinery runs all of them.
//
//	go run ./examples/handler worker --dev
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

var errNoAddress = errors.New("no address")

func main() {
	app := runnel.New("post", nil)
	mails := runnel.NewStream(app, "mails", func(m Mail) string { return m.To }, nil)

	mails.Process("print", runnel.Each(printMail), nil)
	mails.Process("deliver", runnel.EachBatch(10, time.Second, deliver),
		&runnel.ProcessorOptions{OnError: runnel.Ignore})

	app.Every("writer", time.Second, func(ctx context.Context) error {
		return mails.Send(ctx, Mail{"ada", "hello"}, Mail{"", "whom?"}, Mail{"bob", "hi"})
	}, nil)

	cli.Run(app)
}

func printMail(ctx context.Context, e *runnel.Event, mail Mail) error {
	fmt.Printf("event %s of partition %d: to %q\n", e.ID, e.Partition, mail.To)
	return nil
}

// deliver says which mails of a batch failed; the others count as delivered.
func deliver(ctx context.Context, events []*runnel.Event, mails []Mail) error {
	var failed []*runnel.Event
	for i, mail := range mails {
		if mail.To == "" {
			failed = append(failed, events[i])
			continue
		}
		fmt.Println("delivered to", mail.To)
	}
	if len(failed) > 0 {
		return runnel.FailedEvents(errNoAddress, failed...)
	}
	return nil
}
