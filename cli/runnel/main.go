// Runnel is the command line for every app: it sends events, looks after
// processors, and builds and runs workers.
//
//	go install github.com/runnel-go/runnel/cli/runnel@latest
//	runnel status --app shop
package main

import (
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/internal/buses"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedulers"
	"github.com/runnel-go/runnel/internal/sets"
	_ "github.com/runnel-go/runnel/schedule" // schedule worker
	_ "github.com/runnel-go/runnel/webhook"  // webhook serve
)

func main() {
	extension.Known(sets.New(nil))
	extension.Known(schedulers.New(nil))
	extension.Known(buses.New(nil, nil))
	cli.Run(nil)
}
