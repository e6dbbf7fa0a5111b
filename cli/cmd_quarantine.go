package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/words"
)

func quarantineCommand(p *program) *cobra.Command {
	ls := p.command("ls", "list quarantined partitions: since when, at which event, why, and what ends it", nil, listStops(inspect.KindQuarantine),
		"PROG quarantine ls")
	release := p.command("release STREAM/PROCESSOR", "end the quarantine of a partition, once its cause is mended", flagList{
		newFlag(flagPartition, 0, "partition `N` (default none)"),
		newFlag("skip", false, "pass over the event that was the cause, unprocessed; a row whose end was the cause stays without one"),
		yesFlag(),
	}, runRelease,
		"PROG quarantine release orders/printer --partition 3",
		"PROG quarantine release orders/printer --partition 3 --skip --yes")
	return p.group("quarantine", "look after partitions that stopped at a failed event", ls, release)
}

func runRelease(ctx context.Context, s *session, c *call) error {
	n, skip := c.Int(flagPartition), c.Bool("skip")
	if !c.IsSet(flagPartition) || n < 0 {
		return usagef(c, "which partition? say --partition N; to end a pause use resume")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if skip {
		if err := s.admin.CheckScope(ctx, admin.PartitionScope(s.stream, s.processor, n)); err != nil {
			return err
		}
		if err := s.confirm(c, "Pass over the event, or end of a row, unprocessed, at which partition %d of %s/%s is quarantined?", n, s.stream, s.processor); err != nil {
			return err
		}
	}
	done, err := s.admin.Release(ctx, s.stream, s.processor, n, skip)
	if err != nil {
		return err
	}
	return s.out.line(done, "%s", releasedText(done))
}

// releasedText describes a quarantine that was ended.
func releasedText(r admin.Released) string {
	did, reason := "released", words.Summary(r.Reason)
	switch {
	case r.Skipped && r.Event == "":
		did = "released, the row stays without an end"
	case r.Skipped:
		did, reason = "released, event "+r.Event+" is passed over", words.Reason(r.Event, r.Reason)
	}
	return fmt.Sprintf("%s/%s partition %d: %s; it was quarantined for: %s", r.Stream, r.Processor, r.Partition, did, reason)
}
