package admin

import (
	"context"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/inspect"
)

// A Status is the state of an app.
type Status struct {
	App        string
	Redis      string // its address
	At         time.Time
	Leader     string            // worker that runs leader-only tasks, "" for none
	Processors []ProcessorStatus // without those of internal streams, such as sets
	Findings   []string          // the findings of the command check, without any limits
}

// A ProcessorStatus is the state of a processor, all partitions together.
type ProcessorStatus struct {
	Stream    string
	Processor string
	Workers   int // members that live

	Partitions  int
	Owned       int // partitions that have an owner
	Paused      int // partitions that a pause or a block holds back
	Quarantined int // partitions that a failed event has stopped

	Lag     int64         // events that were appended and are not yet acked
	LagMore bool          // the lag is larger than Lag: the count stopped there
	Oldest  time.Duration // since the oldest unacked event was appended, in any partition; 0 for none
	Delayed int64         // events that wait for their time
	Parked  int64         // events that wait for another attempt, or behind such an event
	Dead    int64         // dead letters
	Lost    int64         // events that were removed before they were processed
	Outputs int64         // that are committed and wait in outboxes, in a Redis Cluster
}

// Status returns the state of the app, or an error if any part of it cannot be read.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	client, err := c.app.Client()
	if err != nil {
		return nil, err
	}
	app, err := inspect.App(ctx, client, "", 0)
	if err != nil {
		return nil, err
	}
	findings, err := inspect.Check(ctx, client, app, inspect.Limits{})
	if err != nil {
		return nil, err
	}
	app.HideInternal()
	more, err := extension.Findings(ctx, c.of, client, inspect.Limits{})
	if err != nil {
		return nil, err
	}
	findings = append(findings, more...)
	s := &Status{App: app.App, Redis: app.Redis, At: app.At, Leader: app.Leader}
	for _, f := range findings {
		s.Findings = append(s.Findings, f.Text)
	}
	for _, p := range app.Processors() {
		t := p.Totals
		s.Processors = append(s.Processors, ProcessorStatus{
			Stream: p.Stream, Processor: p.Processor, Workers: p.Working(),
			Partitions: len(p.Partitions), Owned: t.Owned, Paused: t.Held, Quarantined: t.Quarantined,
			Lag: t.Lag, LagMore: t.LagMore, Oldest: time.Duration(t.Age) * time.Millisecond,
			Delayed: t.Delayed, Parked: t.Parked, Dead: t.Dead, Lost: t.Lost, Outputs: t.Outputs,
		})
	}
	return s, nil
}
