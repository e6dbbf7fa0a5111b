package admin_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/embedded"
)

// Pausing holds a processor back on all workers, and loses nothing.
func ExampleClient() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	app := runnel.New("shop", &runnel.Options{RedisURL: url})
	defer app.Close()

	client, printer := admin.New(app), admin.ProcessorScope("orders", "printer")
	err := client.Pause(ctx, printer, &admin.RuleOptions{Who: "ada", Why: "paper jam", For: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := client.Rules(ctx)
	for _, r := range list {
		fmt.Println(r.Kind, r.Scope, "by", r.Who+":", r.Why)
	}
	fmt.Println(err, client.Resume(ctx, printer))
	// Output:
	// pause processor:orders/printer by ada: paper jam
	// <nil> <nil>
}

func serve() (url string, stop func()) {
	srv, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return "redis://" + srv.Addr(), srv.Close
}
