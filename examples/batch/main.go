// Batch loads readings a hundred at a time, or what came within two seconds of
// the first one.
//
//	go run ./examples/batch worker --dev
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
)

type Reading struct {
	Sensor string  `json:"sensor"`
	Value  float64 `json:"value"`
}

func main() {
	app := runnel.New("plant", nil)
	readings := runnel.NewStream(app, "readings", func(r Reading) string { return r.Sensor },
		&runnel.StreamOptions{Partitions: 4})

	readings.Process("load", func(owned context.Context, events *runnel.Events[Reading]) error {
		for batch := range events.Take(100, 2*time.Second).Records() {
			if err := insert(events.Context(), batch); err != nil {
				return fmt.Errorf("insert %d readings: %w", len(batch), err)
			}
		} // the whole batch is acked here, or none of it
		return nil
	}, nil)

	app.Every("sensors", 20*time.Millisecond, func(ctx context.Context) error {
		return readings.Send(ctx, Reading{"t1", 20.5}, Reading{"t2", 21})
	}, nil)

	cli.Run(app)
}

// insert stands for one statement that inserts many rows.
func insert(ctx context.Context, readings []Reading) error {
	fmt.Println("inserted", len(readings), "readings, the first of", readings[0].Sensor)
	return ctx.Err()
}
