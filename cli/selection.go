package cli

import (
	"context"
	"regexp"
	"slices"

	"github.com/spf13/pflag"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/targets"
)

// selectionFlags select parked events or dead letters of a processor.
func selectionFlags(more ...*pflag.Flag) flagList {
	return append(flagList{
		partitionFlag(),
		newFlag(flagKey, "", "only events with this `KEY`"),
		newFlag(flagID, "", "only the event with this `ID`, as lists and the log have it: partition/ID, or without the partition where no other has the same"),
		limitFlag("at most `N` events, the oldest"),
	}, more...)
}

// allFlag allows a command to change everything.
func allFlag() *pflag.Flag {
	return newFlag(flagAll, false, "all of them, when no other flag narrows them down")
}

// A selection is a target, and what of its parked or dead work a command is about.
type selection struct {
	*session
	target   *extension.Target
	filter   extension.Filter
	narrowed bool // by any flag but --limit
}

// selected runs a command on what selectionFlags select.
func selected(run func(ctx context.Context, s *selection, c *call) error) runner {
	return func(ctx context.Context, session *session, c *call) error {
		s := &selection{session: session}
		if err := s.parse(c); err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
			return err
		}
		if d := c.Duration(flagSince); d > 0 {
			now, err := s.client.Redis().Time(ctx).Result()
			if err != nil {
				return err
			}
			s.filter.Since = now.Add(-d)
		}
		var err error
		if s.target, err = targets.Find(ctx, s.app, s.client, s.admin, s.stream, s.processor); err != nil {
			return err
		}
		if err := s.checkID(c); err != nil {
			return err
		}
		return run(ctx, s, c)
	}
}

// parse reads the flags.
func (s *selection) parse(c *call) error {
	s.narrowed = slices.ContainsFunc([]string{flagPartition, flagKey, flagID, flagSince, flagError}, c.IsSet)
	s.filter.Limit, s.filter.Error, s.filter.Key = c.Int(flagLimit), c.String(flagError), keyOf(c)
	if err := checkLimit(c); err != nil {
		return err
	}
	if c.IsSet(flagSince) && c.Duration(flagSince) <= 0 {
		return usagef(c, "--since is a time that has passed, such as 1h")
	}
	if c.IsSet(flagPartition) {
		if c.Int(flagPartition) < 0 {
			return usagef(c, "--partition is 0 or more")
		}
		s.filter.Partitions = []int{c.Int(flagPartition)}
	}
	s.filter.ID = c.String(flagID)
	return nil
}

// checkID refuses what is no ID of an event. A part of an extension may have other IDs.
func (s *selection) checkID(c *call) error {
	if !c.IsSet(flagID) || !targets.OfCore(s.target) {
		return nil
	}
	n, _, named := entryid.ParseEventID(s.filter.ID)
	switch {
	case !named && !wholeID.MatchString(s.filter.ID):
		return usagef(c, "--id %q is no ID, such as 3/1767225600000-0 or 1767225600000-0", s.filter.ID)
	case named && c.IsSet(flagPartition) && c.Int(flagPartition) != n:
		return usagef(c, "--id is of partition %d, --partition says %d", n, c.Int(flagPartition))
	}
	return nil
}

var wholeID = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

// guarded is selected, and refuses to drop everything unless --all is set.
func guarded(run func(ctx context.Context, s *selection, c *call) error) runner {
	return selected(func(ctx context.Context, s *selection, c *call) error {
		if !s.narrowed && s.filter.Limit == 0 && !c.Bool(flagAll) {
			return usagef(c, "which ones? narrow them down with flags, or say --all")
		}
		return run(ctx, s, c)
	})
}

// chosenPartitions are those that --partition chooses: all without it.
func chosenPartitions(c *call, stream string, partitions int) (chosen []int, err error) {
	for n := range partitions {
		if !c.IsSet(flagPartition) || c.Int(flagPartition) == n {
			chosen = append(chosen, n)
		}
	}
	if len(chosen) == 0 {
		return nil, noPartition(stream, c.Int(flagPartition), partitions)
	}
	return chosen, nil
}

func noPartition(stream string, n, partitions int) error {
	return &admin.PartitionError{Stream: stream, Partition: n, Partitions: partitions}
}
