package jobs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

var nameOK = regexp.MustCompile(`^[\w-]{1,64}$`).MatchString

// reserved are names of a scheduler's own processors, which targets of commands share with jobs.
var reserved = []string{"facts", "runs", "ops"}

// A Fault is what is wrong with a job, and where: "task report: after".
type Fault struct {
	Place, Reason string
	Line          int      // of the file that was read, 0: none
	Jobs          []string // of a fault between jobs: whose change may be the reason
}

// Error returns the fault as people read it, behind the line.
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", f.Line, f.Place, f.Reason)
	}
	return f.Place + ": " + f.Reason
}

// A checker gathers faults of a job, and of the document that it is read from.
type checker struct {
	place  string      // what is checked
	part   any         // a pointer to it
	lines  map[any]int // of what was read, by pointers to it, nil for the document; without one none was read
	faults []Fault
}

func (c *checker) fault(line int, place, reason string, args ...any) {
	c.faults = append(c.faults, Fault{Place: place, Reason: fmt.Sprintf(reason, args...), Line: line})
}

// when adds a fault where something is wrong.
func (c *checker) when(wrong bool, reason string, args ...any) {
	if wrong {
		c.fault(cmp.Or(c.lines[c.part], c.lines[nil]), c.place, reason, args...)
	}
}

// oneOf adds a fault where a word is there, and none of a list.
func (c *checker) oneOf(field, word, list string) {
	c.when(word != "" && !slices.Contains(strings.Split(list, ", "), word), "%s %q is none of %s", field, word, list)
}

// Check returns all that is wrong with a job by itself, in its order; Graph knows what it refers to.
func Check(j *Job) []Fault { return (&checker{}).job(j) }

func (c *checker) job(j *Job) []Fault {
	c.place, c.part = "job", &j.Name
	c.when(!nameOK(j.Name), "%q: %s", j.Name, nameRule)
	c.when(slices.Contains(reserved, j.Name), "the name %q is reserved", j.Name)
	c.place, c.part = "tasks", &j.Tasks
	c.when(len(j.Tasks) == 0, "a job has at least one")
	c.when(len(j.Tasks) > MostTasks, "%d, a job has at most %d", len(j.Tasks), MostTasks)
	c.place, c.part = "triggers", &j.Triggers
	c.when(len(j.Triggers) > MostTriggers, "%d, a job has at most %d", len(j.Triggers), MostTriggers)
	seen := map[string]bool{}
	named := func(kind, name string, at int, part any) {
		c.place, c.part = kind+" "+cmp.Or(name, fmt.Sprint(at+1)), part
		c.when(!nameOK(name), "name %q: %s", name, nameRule)
		c.when(seen[c.place], "there are two of that name")
		seen[c.place] = true
	}
	for i := range j.Triggers {
		named(triggerKind, j.Triggers[i].Name, i, &j.Triggers[i])
		c.trigger(&j.Triggers[i])
	}
	for i := range j.Tasks {
		named(taskKind, j.Tasks[i].Name, i, &j.Tasks[i])
		c.task(&j.Tasks[i])
		c.sources(j.Name, &j.Tasks[i])
	}
	return c.faults
}

func (c *checker) trigger(t *Trigger) {
	c.when(t.Every == 0 && t.Cron == "", "it has neither every nor cron")
	c.when(t.Every != 0 && t.Cron != "", "it has both every and cron")
	c.when(t.Every < 0 || !whole(t.Every), "every %v: an interval is positive, and whole milliseconds", t.Every)
	c.when(t.Every != 0 && t.Start.IsZero(), "every needs a start, from which its times are counted")
	c.when(t.Every != 0 && t.TimeZone != "", "timezone is for cron; every counts time that passes")
	if t.Every == 0 && t.Cron != "" {
		_, err := cron.Parse(t.Cron)
		c.when(err != nil, "cron: %v (five fields of numbers, names, lists, ranges and steps, days of the week 0 to 6, or @daily and the like)", err)
		c.when(strings.Contains(t.Cron, "TZ="), "cron: its zone is timezone")
		c.when(strings.HasPrefix(t.Cron, "@every"), "cron: for intervals there is every")
		_, err = time.LoadLocation(t.TimeZone)
		c.when(err != nil, "timezone: %v", err)
		c.when(t.TimeZone == "Local", "timezone: %q differs between machines", t.TimeZone)
	}
	for _, at := range []time.Time{t.Start, t.End} {
		text, out := at.Format(time.RFC3339Nano), at.Year() < 1970 || at.Year() > 9999
		c.when(!at.IsZero() && out, "%v: logical times are from 1970 on", text)
		c.when(!at.Equal(at.Truncate(time.Millisecond)), "%v: logical times are whole milliseconds", text)
	}
	c.when(!t.End.IsZero() && !t.Start.IsZero() && !t.Start.Before(t.End), "no time is from start on and before end")
	c.oneOf("catchup", string(t.CatchUp), "earliest, latest, random, none")
	c.when(t.CatchUp == CatchUpNone && t.MaxCatchUp != 0, "max_catchup is for times that are caught up, and catchup is none")
	c.when(!whole(t.Offset), "offset %v: logical times are whole milliseconds", t.Offset)
	c.when(t.MaxCatchUp < 0, "max_catchup %d is negative", t.MaxCatchUp)
	c.when(t.Late < 0, "late %v is negative", t.Late)
}

func whole(d Duration) bool { return time.Duration(d)%time.Millisecond == 0 }

func (c *checker) task(t *Task) {
	does := min(1, len(t.Handler)) + min(1, len(t.Exec)) + min(1, len(t.Shell))
	c.when(does > 1, "it has more than one of do, exec and shell")
	c.when(len(t.Exec) > 0 && t.Exec[0] == "", "exec: the command is empty")
	c.when(does == 0 && (t.Retry != nil || t.Timeout != 0 || t.Limit != 0), "a join, which does nothing, has no retry, timeout or limit")
	c.when(t.Timeout < 0, "timeout %v is negative", t.Timeout)
	c.when(t.Limit < 0, "limit %d is negative", t.Limit)
	c.oneOf("priority", string(t.Priority), "high, normal, low, backfill")
	r := cmp.Or(t.Retry, &Retry{Max: 1})
	c.when(r.Max < 1, "retry: max %d, it is the number of attempts, at least 1", r.Max)
	c.when(r.MinBackoff < 0 || r.MaxBackoff != 0 && r.MaxBackoff < r.MinBackoff, "retry: backoff from %v to %v", r.MinBackoff, r.MaxBackoff)
	c.when(r.Factor != 0 && r.Factor < 1, "retry: factor %v is below 1", r.Factor)
	c.when(r.Jitter > 1, "retry: jitter %v is above 1", r.Jitter)
}

// sources checks what a task waits for, but not whether that is there.
func (c *checker) sources(job string, t *Task) {
	all := slices.Concat(t.After, t.OnFailure)
	c.when(len(t.After) > 0 && len(t.OnFailure) > 0, "it has both after and on_failure: what handles failures is fired by each of them alone")
	c.when(len(all) == 0, "it has neither after nor on_failure, so it never runs")
	c.when(len(all) > MostNeeds, "it waits for %d, at most %d: put a join between", len(all), MostNeeds)
	c.when(t.Need < 0 || t.Need > len(t.After), "need %d of %d", t.Need, len(t.After))

	seen := map[Source]bool{}
	for i, text := range all {
		r, err := ParseRef(job, text)
		c.when(err != nil, "%v", err)
		c.when(seen[r.Source], "it waits for %s twice", r.Source)
		c.when(i >= len(t.After) && (r.Trigger || r.Ended), "on_failure: %q is no task", text)
		seen[r.Source] = err == nil
	}
}
