package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/words"
)

func quarantineCommand(p *program) *cli.Command {
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

func runResume(ctx context.Context, s *session, c *cli.Context) error {
	stream, processor, err := processorArgument(c)
	if err != nil {
		return err
	}
	n := c.Int(flagPartition)
	if !c.IsSet(flagPartition) || n < 0 {
		return usagef(c, "which partition? say --partition N; to end a pause use resume")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if c.Bool("skip") {
		if err := s.admin.CheckScope(ctx, admin.PartitionScope(stream, processor, n)); err != nil {
			return err
		}
		if err := s.confirm(c, "Pass the event over, unprocessed, at which partition %d of %s/%s is quarantined?", n, stream, processor); err != nil {
			return err
		}
	}
	done, err := s.admin.Release(ctx, stream, processor, n, c.Bool("skip"))
	if err != nil {
		return err
	}
	return s.out.line(done, "%s", releasedText(done))
}

// releasedText tells of a quarantine that was ended.
func releasedText(r admin.Released) string {
	did, reason := "released", words.Summary(r.Reason)
	if r.Skipped {
		did, reason = "released, event "+r.Event+" is passed over", words.Reason(r.Event, r.Reason)
	}
	return fmt.Sprintf("%s/%s partition %d: %s; it was quarantined for: %s", r.Stream, r.Processor, r.Partition, did, reason)
}
