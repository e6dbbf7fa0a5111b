package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
)

func (p *program) quarantine() *cli.Command {
	ls := p.command(&cli.Command{
		Name: "ls", Usage: "list quarantined partitions: since when, at which event, why, and what ends it", Action: p.action(runQuarantineLs),
	}, "PROG quarantine ls")
	release := p.command(&cli.Command{
		Name:      "release",
		Usage:     "end the quarantine of a partition, once its cause is mended",
		ArgsUsage: "STREAM/PROCESSOR",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: flagPartition, DefaultText: "none", Usage: "partition `N`"},
			&cli.BoolFlag{Name: "skip", DisableDefaultText: true, Usage: "pass the event over that was the cause, unprocessed"},
			yesFlag(),
		},
		Action: p.action(runResume),
	},
		"PROG quarantine release orders/printer --partition 3",
		"PROG quarantine release orders/printer --partition 3 --skip --yes")
	return p.group("quarantine", "look after partitions that stand still for a failed event", ls, release)
}

// released is what `quarantine release` tells.
type released struct {
	Stream    string    `json:"stream"`
	Processor string    `json:"processor"`
	Partition int       `json:"partition"`
	Reason    string    `json:"reason"` // of the quarantine
	Event     string    `json:"event"`
	At        time.Time `json:"at"`
	Skipped   bool      `json:"skipped"`
}

func runResume(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, err := processorArgument(c)
	if err != nil {
		return err
	}
	n := c.Int(flagPartition)
	if !c.IsSet(flagPartition) || n < 0 {
		return usagef(c, "which partition? say --partition N; to end a pause use resume")
	}
	meta, err := s.registered(ctx, stream, processor)
	if err != nil {
		return err
	}
	if n >= meta.Partitions {
		return noPartition(stream, n, meta.Partitions)
	}
	if c.Bool("skip") {
		if err := s.confirm(c, "Pass the event over, unprocessed, at which partition %d of %s/%s is quarantined?", n, stream, processor); err != nil {
			return err
		}
	}
	done, err := s.releasePartition(ctx, stream, processor, n, c.Bool("skip"))
	if err != nil {
		return err
	}
	return s.out.line(done, "%s", done.text())
}

// releasePartition ends a quarantine.
func (s *session) releasePartition(ctx context.Context, stream, processor string, n int, skip bool) (released, error) {
	q, ok, err := s.client.ReleaseQuarantine(ctx, s.client.Partition(stream, processor, n), skip)
	if err != nil {
		return released{}, err
	}
	if !ok {
		return released{}, fmt.Errorf("stream %s partition %d: processor %s: it is not quarantined", stream, n, processor)
	}
	return released{stream, processor, n, q.Reason, entryid.EventID(n, q.Event), entryid.MomentOf(q.At), skip}, nil
}

func (r released) text() string {
	did, reason := "released", summary(r.Reason)
	if r.Skipped {
		did, reason = "released, event "+r.Event+" is passed over", reasonOf(r.Event, r.Reason)
	}
	return fmt.Sprintf("%s/%s partition %d: %s; it was quarantined for: %s", r.Stream, r.Processor, r.Partition, did, reason)
}
