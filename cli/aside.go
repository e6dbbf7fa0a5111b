package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/admin"
	"github.com/runnel-go/runnel/internal/entryid"
)

// Flags that choose events which were moved aside: parked, or dead letters.
const (
	flagPartition = "partition"
	flagID        = "id"
	flagLimit     = "limit"
	flagSince     = "since"
	flagError     = "error"
	flagAll       = "all"
	flagDryRun    = "dry-run"
)

// chooseFlags are those of every command on such events.
func chooseFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.IntFlag{Name: flagPartition, DefaultText: "all", Usage: "only of partition `N`"},
		&cli.StringFlag{Name: flagKey, Usage: "only events with this `KEY`"},
		&cli.StringFlag{Name: flagID, Usage: "only the event with this `ID`, as lists and the log have it: partition/ID, or without the partition where no other has the same"},
		&cli.IntFlag{Name: flagLimit, Aliases: []string{"n"}, DefaultText: "all", Usage: "at most `N` events, the oldest"},
	}, more...)
}

// aside is a processor, and the events of it that a command is about.
type aside struct {
	stream, processor string
	filter            admin.Filter
	narrowed          bool // by any flag but --limit
}

// aside reads the argument STREAM/PROCESSOR and the flags of chooseFlags.
func (s *session) aside(ctx context.Context, c *cli.Context) (*aside, error) {
	a := &aside{}
	var err error
	if a.stream, a.processor, err = processorArgument(c); err != nil {
		return nil, err
	}
	if err := a.parse(c); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if d := c.Duration(flagSince); d > 0 {
		now, err := s.client.Redis().Time(ctx).Result()
		if err != nil {
			return nil, err
		}
		a.filter.Since = now.Add(-d)
	}
	return a, nil
}

func processorArgument(c *cli.Context) (stream, processor string, err error) {
	stream, processor, ok := strings.Cut(c.Args().First(), "/")
	if !ok || c.NArg() != 1 || stream == "" || processor == "" {
		return "", "", usagef(c, "which processor? say STREAM/PROCESSOR")
	}
	return stream, processor, nil
}

// parse reads the flags.
func (a *aside) parse(c *cli.Context) error {
	a.narrowed = slices.ContainsFunc([]string{flagPartition, flagKey, flagID, flagSince, flagError}, c.IsSet)
	a.filter.Limit, a.filter.Error = c.Int(flagLimit), c.String(flagError)
	if c.IsSet(flagLimit) && a.filter.Limit < 1 {
		return usagef(c, "--limit is at least 1")
	}
	if c.IsSet(flagSince) && c.Duration(flagSince) <= 0 {
		return usagef(c, "--since is a time that has passed, such as 1h")
	}
	if c.IsSet(flagKey) {
		a.filter.Key = keyOf(c)
	}
	if c.IsSet(flagPartition) {
		if c.Int(flagPartition) < 0 {
			return usagef(c, "--partition is 0 or more")
		}
		a.filter.Partitions = []int{c.Int(flagPartition)}
	}
	if !c.IsSet(flagID) {
		return nil
	}
	a.filter.ID = c.String(flagID)
	n, _, named := entryid.ParseEventID(a.filter.ID)
	switch {
	case !named && !wholeID.MatchString(a.filter.ID):
		return usagef(c, "--id %q is no ID, such as 3/1767225600000-0 or 1767225600000-0", a.filter.ID)
	case named && c.IsSet(flagPartition) && c.Int(flagPartition) != n:
		return usagef(c, "--id is of partition %d, --partition says %d", n, c.Int(flagPartition))
	}
	return nil
}

var wholeID = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

// guard refuses to drop everything where nothing was said.
func (a *aside) guard(c *cli.Context) error {
	if a.narrowed || a.filter.Limit > 0 || c.Bool(flagAll) {
		return nil
	}
	return usagef(c, "which ones? narrow them down with flags, or say --all")
}

// chosenPartitions are those that --partition means: without it all.
func chosenPartitions(c *cli.Context, stream string, partitions int) (chosen []int, err error) {
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
