// Webhook is a bus, a service that publishes what happened to its orders, and one that wants to know.
//
//	go run ./examples/webhook worker --dev
//	curl -u root-token-of-the-example:x 127.0.0.1:8080/topics
package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/webhook"
)

func main() {
	app := runnel.New("shop", nil)
	bus := webhook.New(app, "bus", &webhook.Options{
		RootToken: "root-token-of-the-example", AllowHTTP: true,
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // the receiver below
	})
	secret := webhook.NewSecret()
	mux := http.NewServeMux()
	mux.Handle("/", bus)
	mux.Handle("/mail", webhook.Receive(webhook.ReceiveOptions{Secrets: []string{secret}}, func(_ context.Context, b *webhook.Batch) error {
		for _, e := range b.Events {
			fmt.Println("mail got", b.ID, e.Topic, e.Type, e.URL)
		}
		return nil
	}))

	app.Task("serve", func(ctx context.Context) error {
		l, err := net.Listen("tcp", cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: mux}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		go func() { _ = server.Serve(l) }()
		return bus.Subscribe(ctx, webhook.Subscription{Client: "mail", Callback: "http://" + l.Addr().String() + "/mail", Topics: []string{"orders"}, Secret: secret})
	}, nil)
	app.Every("publish", 100*time.Millisecond, func(ctx context.Context) error {
		url := fmt.Sprintf("https://shop.example.com/orders/%d", rand.N(1000))
		_, err := bus.Publish(ctx, "shop", webhook.Event{Topic: "orders", Type: webhook.Update, URL: url})
		return err
	}, nil)
	cli.Run(app)
}
