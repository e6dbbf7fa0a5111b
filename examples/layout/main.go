// Layout is an app over several packages: each registers what is its own.
//
//	go run ./examples/layout worker --dev
package main

import (
	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/examples/layout/billing"
	"github.com/runnel-go/runnel/examples/layout/orders"
)

func main() {
	app := runnel.New("shop", nil)
	placed := orders.Register(app)
	billing.Register(app, placed)
	cli.Run(app)
}
