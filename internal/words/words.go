// Package words writes numbers, times and errors for people, in the command line, the
// dashboard and what monitoring reads.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Plural is "1 event" or "2 events".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, y := strings.CutSuffix(noun, "entry"); y {
		noun = stem + "entrie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// AtLeast is a number, or ">" and the number if there are more.
func AtLeast(n int64, more bool) string {
	if more {
		return ">" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// Dash is the text, or "-" for none.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Short is a duration to the second, or below one to the millisecond.
func Short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Ago is how long a time is past, "-" for none.
func Ago(now time.Time, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return Short(max(now.Sub(*t), 0)) + " ago"
}

// Summary is an error on one line, not too long, and without the stack of a panic.
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

// Reason is the summary of why an event stopped a partition, without the name of the event
// in front: what shows the reason names the event apart.
func Reason(event, reason string) string {
	return Summary(strings.TrimPrefix(reason, "event "+event+": "))
}
