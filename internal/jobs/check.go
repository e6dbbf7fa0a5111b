package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/runnel-go/runnel/internal/cron"
)

// Limits of a job.
const (
	MostTasks    = 10_000
	MostTriggers = 1_000
	MostNeeds    = 100 // sources of a task
)

const nameRule = `a name has letters, digits, "_" and "-", at most 64`

func nameOK(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// reserved are names of a scheduler's own processors, which targets of commands share with jobs.
var reserved = []string{"facts", "runs", "ops"}

// A Fault is what is wrong with a job, and where: "task report: after".
type Fault struct {
	Place, Reason string
	Line          int // of the file that was read, 0: none
}

// Error returns the fault as people read it, behind the line.
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", f.Line, f.Place, f.Reason)
	}
	return f.Place + ": " + f.Reason
}

type checker struct{ faults []Fault }

func (c *checker) add(place, reason string, args ...any) {
	c.faults = append(c.faults, Fault{Place: place, Reason: fmt.Sprintf(reason, args...)})
}

// Check returns all that is wrong with a job by itself, in its order; Graph knows what it refers to.
func Check(j *Job) []Fault {
	c := &checker{}
	switch {
	case !nameOK(j.Name):
		c.add("job", "%q: %s", j.Name, nameRule)
	case slices.Contains(reserved, j.Name):
		c.add("job", "the name %q is reserved", j.Name)
	}
	if len(j.Tasks) == 0 {
		c.add("tasks", "a job has at least one")
	}
	if len(j.Tasks) > MostTasks {
		c.add("tasks", "%d, a job has at most %d", len(j.Tasks), MostTasks)
	}
	if len(j.Triggers) > MostTriggers {
		c.add("triggers", "%d, a job has at most %d", len(j.Triggers), MostTriggers)
	}
	seen := map[string]bool{}
	for i := range j.Triggers {
		t := &j.Triggers[i]
		c.trigger(placeOf(triggerKind, t.Name, i), t)
		if place := triggerKind + " " + t.Name; seen[place] {
			c.add(place, "there are two of that name")
		} else {
			seen[place] = true
		}
	}
	for i := range j.Tasks {
		t := &j.Tasks[i]
		c.task(placeOf(taskKind, t.Name, i), j.Name, t)
		if place := taskKind + " " + t.Name; seen[place] {
			c.add(place, "there are two of that name")
		} else {
			seen[place] = true
		}
	}
	return c.faults
}

func placeOf(kind, name string, at int) string {
	if name == "" {
		return fmt.Sprintf("%s %d", kind, at+1)
	}
	return kind + " " + name
}

func (c *checker) trigger(place string, t *Trigger) {
	if !nameOK(t.Name) {
		c.add(place, "name %q: %s", t.Name, nameRule)
	}
	switch {
	case t.Every == 0 && t.Cron == "":
		c.add(place, "it has neither every nor cron")
	case t.Every != 0 && t.Cron != "":
		c.add(place, "it has both every and cron")
	case t.Every != 0:
		if t.Every < 0 || time.Duration(t.Every)%time.Millisecond != 0 {
			c.add(place, "every %v: an interval is positive, and whole milliseconds", t.Every)
		}
		if t.Start.IsZero() {
			c.add(place, "every needs a start, from which its times are counted")
		}
		if t.TimeZone != "" {
			c.add(place, "timezone is for cron; every counts time that passes")
		}
	default:
		if _, err := cron.Parse(t.Cron); err != nil {
			c.add(place, "cron: %v", err)
		}
		if _, err := zoneOf(t.TimeZone); err != nil {
			c.add(place, "timezone: %v", err)
		}
	}
	for _, at := range []time.Time{t.Start, t.End} {
		if !at.IsZero() && (at.Year() < 1970 || at.Year() > 9999) {
			c.add(place, "%v: logical times are from 1970 on", at.Format(time.RFC3339))
		}
		if !at.Equal(at.Truncate(time.Millisecond)) {
			c.add(place, "%v: logical times are whole milliseconds", at.Format(time.RFC3339Nano))
		}
	}
	if !t.End.IsZero() && !t.Start.IsZero() && !t.Start.Before(t.End) {
		c.add(place, "no time is from start on and before end")
	}
	switch t.CatchUp {
	case "", CatchUpEarliest, CatchUpLatest, CatchUpRandom:
	case CatchUpNone:
		if t.MaxCatchUp != 0 {
			c.add(place, "max_catchup is for times that are caught up, and catchup is none")
		}
	default:
		c.add(place, "catchup %q is none of earliest, latest, random, none", t.CatchUp)
	}
	if time.Duration(t.Offset)%time.Millisecond != 0 {
		c.add(place, "offset %v: logical times are whole milliseconds", t.Offset)
	}
	if t.MaxCatchUp < 0 {
		c.add(place, "max_catchup %d is negative", t.MaxCatchUp)
	}
	if t.Late < 0 {
		c.add(place, "late %v is negative", t.Late)
	}
}

func (c *checker) task(place, job string, t *Task) {
	if !nameOK(t.Name) {
		c.add(place, "name %q: %s", t.Name, nameRule)
	}
	c.sources(place, job, t)
	does := 0
	for _, one := range []bool{t.Handler != "", len(t.Exec) > 0, t.Shell != ""} {
		if one {
			does++
		}
	}
	if does > 1 {
		c.add(place, "it has more than one of do, exec and shell")
	}
	if len(t.Exec) > 0 && t.Exec[0] == "" {
		c.add(place, "exec: the command is empty")
	}
	if does == 0 && (t.Retry != nil || t.Timeout != 0 || t.Limit != 0) {
		c.add(place, "a join, which does nothing, has no retry, timeout or limit")
	}
	if t.Timeout < 0 {
		c.add(place, "timeout %v is negative", t.Timeout)
	}
	if t.Limit < 0 {
		c.add(place, "limit %d is negative", t.Limit)
	}
	switch t.Priority {
	case "", PriorityHigh, PriorityNormal, PriorityLow, PriorityBackfill:
	default:
		c.add(place, "priority %q is none of high, normal, low, backfill", t.Priority)
	}
	if r := t.Retry; r != nil {
		switch {
		case r.Max < 1:
			c.add(place, "retry: max %d, it is the number of attempts, at least 1", r.Max)
		case r.MinBackoff < 0 || r.MaxBackoff < 0 || r.MaxBackoff != 0 && r.MinBackoff > r.MaxBackoff:
			c.add(place, "retry: backoff from %v to %v", r.MinBackoff, r.MaxBackoff)
		case r.Factor != 0 && r.Factor < 1:
			c.add(place, "retry: factor %v is below 1", r.Factor)
		case r.Jitter > 1:
			c.add(place, "retry: jitter %v is above 1", r.Jitter)
		}
	}
}

// sources checks what a task waits for, but not whether that is there.
func (c *checker) sources(place, job string, t *Task) {
	switch {
	case len(t.After) > 0 && len(t.OnFailure) > 0:
		c.add(place, "it has both after and on_failure: what handles failures is fired by each of them alone")
	case len(t.After) == 0 && len(t.OnFailure) == 0:
		c.add(place, "it has neither after nor on_failure, so it never runs")
	case len(t.After)+len(t.OnFailure) > MostNeeds:
		c.add(place, "it waits for %d, at most %d: put a join between", len(t.After)+len(t.OnFailure), MostNeeds)
	}
	if t.Need < 0 || t.Need > len(t.After) {
		c.add(place, "need %d of %d", t.Need, len(t.After))
	}
	seen := map[Source]bool{}
	for _, text := range slices.Concat(t.After, t.OnFailure) {
		r, err := ParseRef(job, text)
		if err != nil {
			c.add(place, "%v", err)
			continue
		}
		if seen[r.Source] {
			c.add(place, "it waits for %s twice", r.Source)
		}
		seen[r.Source] = true
		if slices.Contains(t.OnFailure, text) && (r.Trigger || r.Ended) {
			c.add(place, "on_failure: %q is no task", text)
		}
	}
}
