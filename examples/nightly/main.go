// Nightly sums up the orders of each day: two tasks fetch what a third one joins, a fourth mails the report, and a fifth raises an
// alarm where one has failed. A day lasts ten seconds here.
//
//	go run ./examples/nightly worker --dev
//	go run ./examples/nightly schedule grid
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/cli"
	"github.com/runnel-go/runnel/schedule"
)

// day is how long a day lasts.
const day = 10 * time.Second

func main() {
	app := runnel.New("nightly", nil)
	declare(app, time.Now().Truncate(day).Add(-3*day))
	cli.Run(app)
}

// declare declares the job; its first day is start.
func declare(app *runnel.App, start time.Time) {
	s := schedule.New(app, "schedule", nil)
	s.Job("report", schedule.Job{
		Triggers: []schedule.Trigger{{Name: "day", Every: day, Start: start, MaxCatchUp: 30}},
		Tasks: []schedule.Task{
			{Name: "orders", After: []string{"trigger/day"}, Do: orders, Limit: 2},
			{Name: "rates", After: []string{"trigger/day"}, Do: rates, Retry: &runnel.Retry{Max: 3, MinBackoff: time.Second}, Timeout: 5 * time.Second},
			{Name: "sum", After: []string{"task/orders", "task/rates"}, Do: sum},
			{Name: "mail", After: []string{"task/sum"}, Do: mail},
			{Name: "alarm", OnFailure: []string{"task/orders", "task/rates", "task/sum"}, Do: alarm},
		},
	})
}

func orders(_ context.Context, r *schedule.Run) error {
	fmt.Println("orders of", r.Time.Format(time.TimeOnly))
	return nil
}

// rates come from a service that fails at times.
func rates(_ context.Context, r *schedule.Run) error {
	if r.Time.Unix()/10%3 == 0 && r.Attempt == 1 {
		return errors.New("the service is busy")
	}
	fmt.Println("rates of", r.Time.Format(time.TimeOnly), "attempt", r.Attempt)
	return nil
}

// sum may run again for the same day, by schedule activate: it writes the same report.
func sum(_ context.Context, r *schedule.Run) error {
	fmt.Println("report of", r.Time.Format(time.TimeOnly))
	return nil
}

func mail(_ context.Context, r *schedule.Run) error {
	fmt.Println("mailed", r.Time.Format(time.TimeOnly))
	return nil
}

func alarm(_ context.Context, r *schedule.Run) error {
	fmt.Println("ALARM:", r.Time.Format(time.TimeOnly), "has no report")
	return nil
}
