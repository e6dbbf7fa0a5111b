// Timer runs background tasks: on every worker, or on one of them, the leader.
//
//	go run ./examples/timer worker --dev
package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

func main() {
	app := runnel.New("ops", nil)

	app.Task("warmup", func(ctx context.Context) error {
		slog.Info("warmup: once, on every worker")
		return nil
	}, nil)

	app.Every("poll", 2*time.Second, func(ctx context.Context) error {
		slog.Info("poll: every two seconds, on the leader") // ctx ends when another worker may lead
		return nil
	}, &runnel.TaskOptions{Leader: true})

	app.Cron("report", "45 17 * * MON-FRI", func(ctx context.Context) error {
		slog.Info("report: at 17:45 UTC on weekdays, on the leader")
		return nil
	}, &runnel.TaskOptions{Leader: true})

	// Redis remembers which of its times was last: started again after an hour, a
	// worker bills each minute that was missed, and none of them twice, unless a failover
	// of Redis loses what it remembers.
	app.Cron("billing", "* * * * *", func(ctx context.Context) error {
		slog.Info("billing: each minute, also those at which no worker ran", "minute", runnel.DueTime(ctx))
		return nil
	}, &runnel.TaskOptions{Leader: true, Durable: true, CatchUp: runnel.CatchUpAll})

	cli.Run(app)
}
