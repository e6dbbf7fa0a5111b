package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

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

// letters are the short forms of flags, of whichever command.
var letters = map[string]string{flagOutput: "o", flagLimit: "n", flagYes: "y", flagFollow: "f", flagHelp: "h"}

type flagList []*pflag.Flag

// newFlag returns a flag of the type of its default: bool, int, int64, string or time.Duration. The usage
// has the name of its value in backquotes. It panics for another type.
func newFlag(name string, otherwise any, usage string) *pflag.Flag {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	switch v := otherwise.(type) {
	case bool:
		set.BoolP(name, letters[name], v, usage)
	case int:
		set.IntP(name, letters[name], v, usage)
	case int64:
		set.Int64P(name, letters[name], v, usage)
	case string:
		set.StringP(name, letters[name], v, usage)
	case time.Duration:
		set.DurationP(name, letters[name], v, usage)
	default:
		panic(fmt.Sprintf("cli: flag --%s has a default of type %T", name, otherwise))
	}
	return set.Lookup(name)
}

func (l flagList) addTo(set *pflag.FlagSet) {
	for _, f := range l {
		set.AddFlag(f)
	}
}

func partitionFlag() *pflag.Flag {
	return newFlag(flagPartition, 0, "only of partition `N` (default all)")
}

func limitFlag(usage string) *pflag.Flag {
	return newFlag(flagLimit, 0, usage+" (default all)")
}

// keyOf is --key, nil without it.
func keyOf(c *call) *string {
	return ifSet(c, flagKey, c.String(flagKey))
}

// ifSet is the value of a flag, nil without the flag.
func ifSet[T any](c *call, name string, value T) *T {
	if !c.IsSet(name) {
		return nil
	}
	return &value
}

// checkLimit refuses a --limit that would show nothing.
func checkLimit(c *call) error {
	if c.IsSet(flagLimit) && c.Int(flagLimit) < 1 {
		return usagef(c, "--limit is at least 1")
	}
	return nil
}

// internalFlag is --all of lists.
func internalFlag() *pflag.Flag {
	return newFlag(flagAll, false, "also streams that only their extension understands, such as sets")
}

func dryRunFlag() *pflag.Flag {
	return newFlag(flagDryRun, false, "list what it would be about, and change nothing")
}

// yesFlag is the flag of every command that asks.
func yesFlag() *pflag.Flag {
	return newFlag(flagYes, false, "do not ask; needed where there is no terminal to ask at")
}
