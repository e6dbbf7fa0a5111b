// Deadletter moves actions that cannot be processed to a typed stream of their own, so that those
// behind them go on: `tail actions.dead` shows them. They are not the dead letters of a Retry,
// which `dead ls` lists: for these see examples/retry.
//
//	go run ./examples/deadletter worker --dev
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/middleware"
)

type Action struct {
	User string `json:"user"`
	Kind string `json:"kind"`
}

func main() {
	app := runnel.New("site", nil)
	actions := runnel.NewStream(app, "actions", func(a Action) string { return a.User }, nil)
	dead := middleware.DeadLetters(actions) // the stream "actions.dead"

	actions.Process("apply", func(owned context.Context, events *runnel.Events[Action]) error {
		for action := range events.Records() {
			if action.Kind != "signup" {
				return fmt.Errorf("unknown kind %q", action.Kind)
			}
			fmt.Println("signed up:", action.User)
		}
		return nil
	}, &runnel.ProcessorOptions{
		Middleware: []runnel.Middleware{
			middleware.DeadLetter(dead),
			middleware.RetryInPlace(2, 100*time.Millisecond), // before it is a dead letter
		},
	})

	dead.Process("alert", func(owned context.Context, events *runnel.Events[middleware.Dead]) error {
		for d := range events.Records() {
			slog.WarnContext(events.Context(), "dead letter", "of", d.Stream, "id", d.ID, "key", d.Key, "reason", d.Error)
		}
		return nil
	}, nil)

	app.Every("users", time.Second, func(ctx context.Context) error {
		return actions.Send(ctx, Action{"ada", "signup"}, Action{"bob", "explode"})
	}, nil)

	cli.Run(app)
}
