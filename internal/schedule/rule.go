package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runnel-go/runnel/internal/jobs"
)

// A Rule is what is in the heap: a trigger, or what goes through a list of its logical times beside it.
type Rule struct {
	Kind    RuleKind     `json:"kind,omitempty"`
	Rev     int64        `json:"rev"` // the operation that made it so
	Trigger jobs.Trigger `json:"trigger"`
	From    int64        `json:"from,omitempty"` // ms: times behind this, of RuleBackfill from it on
	To      int64        `json:"to,omitempty"`   // up to this, of RuleBackfill before it
	Now     int64        `json:"now,omitempty"`  // when the times were found to be missed
	Class   int64        `json:"priority,omitempty"`
	Until   int64        `json:"until,omitempty"` // of RulePause
}

// A RuleKind is what becomes of a rule that is due.
type RuleKind string

const (
	RuleTrigger  RuleKind = ""         // its times fire; the position is the last one, in ms
	RuleCatchUp  RuleKind = "catchup"  // missed times are caught up; the position is how many of them have fired
	RuleBackfill RuleKind = "backfill" // the same for times that were asked for
	RulePause    RuleKind = "pause"    // a pause ends
)

// String returns the rule as it is stored.
func (r *Rule) String() string {
	text, _ := json.Marshal(r) // it has nothing that cannot be
	return string(text)
}

// ParseRule is the inverse of String.
func ParseRule(text string) (*Rule, error) {
	r := &Rule{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	return r, nil
}

// SourceOf returns the source in an ID of the heap: what goes beside a trigger has its own behind a "#".
func SourceOf(id string) string {
	source, _, _ := strings.Cut(id, "#")
	return source
}

// priorities are by class.
var priorities = []jobs.Priority{High: jobs.PriorityHigh, Normal: jobs.PriorityNormal, Low: jobs.PriorityLow, Backfill: jobs.PriorityBackfill}

// ClassOf returns a priority as cells have it.
func ClassOf(p jobs.Priority) int64 {
	return int64(max(slices.Index(priorities, cmp.Or(p, jobs.PriorityNormal)), High))
}

// PriorityOf is the inverse of ClassOf.
func PriorityOf(class int64) jobs.Priority { return priorities[min(max(class, 0), Backfill)] }

// Compile returns what the partitions have to know of jobs, of which one begins at a time, in ms.
func Compile(all map[string]*Job, partitions int, partition func(source string) int, at int64) []*Definition {
	defs := make([]*Definition, partitions)
	for n := range defs {
		defs[n] = NewDefinition()
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		j := all[name]
		for _, t := range j.Def.Triggers {
			id := jobs.Source{Job: name, Name: t.Name, Trigger: true}.String()
			r := &Rule{Rev: j.Rev, Trigger: t}
			begin := at
			if !t.Start.IsZero() {
				begin = t.Start.UnixMilli() - 1
			}
			defs[partition(id)].Rules[id] = Due{ID: id, Rule: r.String(), Position: begin, Paused: j.Pause != nil}
		}
		for i := range j.Def.Tasks {
			compileTask(defs, partition, j, &j.Def.Tasks[i])
		}
	}
	return defs
}

func compileTask(defs []*Definition, partition func(source string) int, j *Job, t *jobs.Task) {
	task := jobs.Source{Job: j.Def.Name, Name: t.Name}.String()
	def := TaskDef{Rev: j.Rev, Need: t.Need, Priority: ClassOf(t.Priority), Attempts: 1, Limit: t.Limit, Paused: j.Pause != nil}
	if t.Retry != nil {
		def.Attempts = t.Retry.Max
	}
	if t.Handler == "" && t.Shell == "" && len(t.Exec) == 0 {
		def.Join = 1
	}
	if def.Need == len(t.After) {
		def.Need = 0
	}
	for _, text := range slices.Concat(t.After, t.OnFailure) {
		r, err := jobs.ParseRef(j.Def.Name, text)
		if err != nil {
			continue // Check has refused it
		}
		source, list, results, fails := r.Source.String(), &def.After, "s", len(t.OnFailure) > 0
		if fails {
			list, results = &def.Handles, "f"
		} else if r.Ended {
			results = "sfk"
		}
		*list = append(*list, source)
		defs[partition(source)].Target(source, results, task, fails)
	}
	defs[partition(task)].Task(task, def)
}

// Redefine has the partitions know what now says in place of old: all of them make one step before any makes the next one.
func (s *Scheduler) Redefine(ctx context.Context, operation int64, old, now []*Definition) error {
	all := make([][3][]any, len(now))
	for n := range now {
		all[n] = steps(old[n], now[n])
	}
	for step := range 3 {
		for n := range now {
			if err := s.tell(ctx, n, operation, all[n][step], len(old[n].Fields)+len(old[n].Rules) == 0); err != nil {
				return err
			}
		}
	}
	for n := range now {
		for field, text := range now[n].Fields {
			task, is := strings.CutPrefix(field, taskField)
			if was := old[n].Fields[field]; is && was != "" && sourcesOf(was) != sourcesOf(text) {
				if err := s.adapt(ctx, n, task); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sourcesOf returns what a stored definition of a task waits for.
func sourcesOf(text string) string {
	var def TaskDef
	_ = json.Unmarshal([]byte(text), &def) // it is our own
	return strings.Join(def.After, " ") + "|" + strings.Join(def.Handles, " ")
}

// adapt has the cells of a task wait no more for sources that are gone.
func (s *Scheduler) adapt(ctx context.Context, n int, task string) error {
	for at, more := "", true; more; more = at != "" {
		if err := s.do(ctx, "adapt", n, obj{"task": task, "from": at}, &at); err != nil {
			return err
		}
	}
	return nil
}
