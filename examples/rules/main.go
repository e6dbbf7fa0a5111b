// Rules holds a processor back while something is worked on, and lets it go on.
//
//	go run ./examples/rules worker --dev
//
// The same from the command line, for a running worker of yours:
//
//	shop pause parts/press --why "oil change" --for 1h --wait
//	shop rules ls
//	shop resume parts/press
package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/cli"
)

type Part struct {
	Number int `json:"number"`
}

func main() {
	app := runnel.New("plant", nil)
	parts := runnel.NewStream(app, "parts", func(Part) string { return "line 1" }, nil)

	parts.Process("press", runnel.Each(func(ctx context.Context, _ *runnel.Event, p Part) error {
		slog.InfoContext(ctx, "pressed", "number", p.Number)
		return nil
	}), nil)

	number := 0
	app.Every("feeder", 300*time.Millisecond, func(ctx context.Context) error {
		number++
		return parts.Send(ctx, Part{number}) // while the press stands still, too
	}, nil)

	app.Every("oil", 5*time.Second, func(ctx context.Context) error { return changeOil(ctx, admin.New(app)) }, nil)

	cli.Run(app)
}

func changeOil(ctx context.Context, rules *admin.Client) error {
	press := admin.ProcessorScope("parts", "press")
	// If this program dies, the press goes on after an hour.
	if err := rules.Pause(ctx, press, &admin.RuleOptions{Why: "oil change", For: time.Hour}); err != nil {
		return err
	}
	if err := rules.Wait(ctx, press); err != nil { // until no worker presses any more
		return err
	}
	slog.Info("the press stands still")
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	return rules.Resume(context.WithoutCancel(ctx), press)
}
