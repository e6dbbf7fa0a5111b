package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runnel-go/runnel/internal/entryid"
	"github.com/runnel-go/runnel/internal/inspect"
	"github.com/runnel-go/runnel/internal/store"
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
	meta              store.Meta
	filter            inspect.Filter
	narrowed          bool // by any flag but --limit
	one               bool // partition is meant
}

// aside reads the argument STREAM/PROCESSOR and the flags of chooseFlags, and
// looks whether there is such a processor.
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
	if a.meta, err = s.metadata(ctx, a.stream); err != nil {
		return nil, err
	}
	there := slices.Contains(a.meta.Processors, a.processor)
	if !there {
		if there, err = s.hasDead(ctx, a); err != nil {
			return nil, err
		}
	}
	if !there {
		return nil, unknownProcessor(a.stream, a.processor, a.meta.Processors)
	}
	for _, n := range a.filter.Partitions {
		if n >= a.meta.Partitions {
			return nil, noPartition(a.stream, n, a.meta.Partitions)
		}
	}
	for n := 0; len(a.filter.Partitions) < a.meta.Partitions && !a.one; n++ {
		a.filter.Partitions = append(a.filter.Partitions, n)
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
		a.filter.Partitions, a.one = []int{c.Int(flagPartition)}, true
	}
	if !c.IsSet(flagID) {
		return nil
	}
	n, id, named := entryid.ParseEventID(c.String(flagID))
	switch {
	case !named && !wholeID.MatchString(c.String(flagID)):
		return usagef(c, "--id %q is no ID, such as 3/1767225600000-0 or 1767225600000-0", c.String(flagID))
	case !named:
		a.filter.ID = c.String(flagID)
		return nil
	case a.one && a.filter.Partitions[0] != n:
		return usagef(c, "--id is of partition %d, --partition says %d", n, a.filter.Partitions[0])
	}
	a.filter.ID, a.filter.Partitions, a.one = id, []int{n}, true
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

// metadata is a stream's, or an error that says what there is.
func (s *session) metadata(ctx context.Context, stream string) (store.Meta, error) {
	m, ok, err := s.client.LoadMeta(ctx, stream)
	if err == nil && !ok {
		err = s.noStream(ctx, stream)
	}
	return m, err
}

// registered connects and returns the metadata of a stream that has this processor.
func (s *session) registered(ctx context.Context, stream, processor string) (store.Meta, error) {
	if err := s.connect(ctx); err != nil {
		return store.Meta{}, err
	}
	meta, err := s.metadata(ctx, stream)
	if err == nil && !slices.Contains(meta.Processors, processor) {
		err = unknownProcessor(stream, processor, meta.Processors)
	}
	return meta, err
}

// hasDead reports whether there are dead letters of a processor, which outlive it.
func (s *session) hasDead(ctx context.Context, a *aside) (bool, error) {
	for n := range a.meta.Partitions {
		letters, err := s.client.DeadLetters(ctx, a.place(s, n), "", 1)
		if err != nil || len(letters) > 0 {
			return err == nil, err
		}
	}
	return false, nil
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
	return fmt.Errorf("stream %s has no partition %d: it has %d, from 0 on", stream, n, partitions)
}

func unknownProcessor(stream, processor string, there []string) error {
	return fmt.Errorf("stream %s has no processor %q; %s; a processor is there once a worker has run it", stream, processor, known(there))
}

func (a *aside) place(s *session, partition int) store.Partition {
	return s.client.Partition(a.stream, a.processor, partition)
}

// ago says how long a time is past, "-" for none.
func ago(now time.Time, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return shortly(max(now.Sub(*t), 0)) + " ago"
}

// summary is an error on one line, not too long, and without the stack of a panic.
func summary(text string) string {
	if at := strings.Index(text, "\ngoroutine "); at > 0 {
		text = text[:at]
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return text
}

// reasonOf is the summary of why an event stopped a partition, without the name of the event in front:
// a command that shows the reason names the event apart.
func reasonOf(event, reason string) string {
	return summary(strings.TrimPrefix(reason, "event "+event+": "))
}

// plural is "1 event" or "2 events".
func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, y := strings.CutSuffix(noun, "entry"); y {
		noun = stem + "entrie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
