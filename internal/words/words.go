// Package words writes numbers, times and errors for people: in the command line, the dashboard and
// monitoring.
package words

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Plural returns "1 event" or "2 events".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, y := strings.CutSuffix(noun, "entry"); y {
		noun = stem + "entrie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AtLeast returns the number, with a ">" in front if there are more.
func AtLeast(n int64, more bool) string {
	if more {
		return ">" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// Dash returns the text, or "-" if it is empty.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Short rounds a duration to the second, or below one to the millisecond.
func Short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Ago returns how long ago t was, "-" for nil.
func Ago(now time.Time, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return Short(max(now.Sub(*t), 0)) + " ago"
}

// Summary shortens an error to one line, without the stack of a panic.
func Summary(text string) string {
	if at := strings.Index(text, "\ngoroutine "); at > 0 {
		text = text[:at]
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return text
}

// Reason is the Summary of why an event stopped a partition, without the leading name of the event,
// which is shown apart.
func Reason(event, reason string) string {
	return Summary(strings.TrimPrefix(reason, "event "+event+": "))
}

// Module is the path of this module.
const Module = "github.com/runnel-go/runnel"

// Version returns the version of this module in the program, such as "(devel)".
func Version() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Module {
			return VersionOf(m)
		}
	}
	return "unknown"
}

// VersionOf returns the version of a module of the program.
func VersionOf(m *debug.Module) string {
	if m.Replace != nil {
		m = m.Replace
	}
	return cmp.Or(m.Version, "(devel)")
}
