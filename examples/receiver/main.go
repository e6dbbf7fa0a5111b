// Receiver gets batches of a webhook bus, and does nothing twice: it puts what comes into a stream of its own, under IDs that are
// the same when a batch comes again, and answers. What takes long happens behind that.
//
//	go run ./examples/receiver worker --dev
//	curl -u guess-me-not:x 127.0.0.1:9999 -H 'Content-Type: application/json' -H 'Runnel-Batch: msg_2' -d '[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/1","t":1767225600000}]'
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/webhook"
)

// A Change is what this service remembers of an event.
type Change struct{ Topic, Type, URL string }

const uuid = "guess-me-not" // of our subscription; better is a secret, see webhook.ReceiveOptions

func main() {
	app := runnel.New("receiver", nil)
	changes := runnel.NewStream(app, "changes", func(c Change) string { return c.URL }, nil)
	changes.Process("index", func(_ context.Context, events *runnel.Events[Change]) error {
		for c := range events.Records() {
			fmt.Println("indexed", c.Type, c.URL)
		}
		return nil
	}, nil)

	handler := webhook.Receive(webhook.ReceiveOptions{UUID: uuid}, func(ctx context.Context, b *webhook.Batch) error {
		var out []runnel.Outgoing[Change]
		for i, e := range b.Events {
			out = append(out, runnel.Outgoing[Change]{Record: Change{e.Topic, e.Type, e.URL}, DedupID: fmt.Sprint(b.ID, "-", i)})
		}
		_, err := changes.SendEvents(ctx, out...)
		return err // an error has the batch sent again
	})
	app.Task("serve", func(ctx context.Context) error {
		l, err := net.Listen("tcp", cmp.Or(os.Getenv("ADDR"), "127.0.0.1:9999"))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: handler}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		go twice("http://" + l.Addr().String())
		_ = server.Serve(l)
		return nil
	}, nil)
	cli.Run(app)
}

// twice sends a batch twice, as a bus does whose first answer was lost.
func twice(url string) {
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(`[{"topic":"orders","type":"update","url":"https://shop.example.com/orders/7","t":1767225600000}]`)))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.SetBasicAuth(uuid, "x")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Runnel-Batch", "msg_1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println("answered", resp.StatusCode)
	}
}
