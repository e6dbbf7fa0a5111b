package cli

import "github.com/urfave/cli/v2"

// Flags of several commands.
const (
	flagPartition = "partition"
	flagKey       = "key"
	flagID        = "id"
	flagLimit     = "limit"
	flagSince     = "since"
	flagError     = "error"
	flagAll       = "all"
	flagDryRun    = "dry-run"
	flagYes       = "yes"
)

// boolFlag is a flag without a value.
func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, DisableDefaultText: true, Usage: usage}
}

func partitionFlag() cli.Flag {
	return &cli.IntFlag{Name: flagPartition, DefaultText: "all", Usage: "only of partition `N`"}
}

func limitFlag(usage string) cli.Flag {
	return &cli.IntFlag{Name: flagLimit, Aliases: []string{"n"}, DefaultText: "all", Usage: usage}
}

// keyOf is --key, nil without it.
func keyOf(c *cli.Context) *string {
	return ifSet(c, flagKey, c.String(flagKey))
}

// ifSet is the value of a flag, nil without the flag.
func ifSet[T any](c *cli.Context, name string, value T) *T {
	if !c.IsSet(name) {
		return nil
	}
	return &value
}

// checkLimit refuses a --limit that would show nothing.
func checkLimit(c *cli.Context) error {
	if c.IsSet(flagLimit) && c.Int(flagLimit) < 1 {
		return usagef(c, "--limit is at least 1")
	}
	return nil
}

// internalFlag is --all of lists.
func internalFlag() cli.Flag {
	return boolFlag(flagAll, "also streams that only their extension understands, such as sets")
}

func dryRunFlag() cli.Flag {
	return boolFlag(flagDryRun, "list what it would be about, and change nothing")
}

// yesFlag is the flag of every command that asks.
func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, DisableDefaultText: true, Usage: "do not ask; needed where there is no terminal to ask at"}
}
