package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// A TaskDef is what scripts know of a task.
type TaskDef struct {
	Rev      int64    `json:"rev"`
	After    []string `json:"e,omitempty"`
	Handles  []string `json:"f,omitempty"`
	Need     int      `json:"n"`
	Priority int64    `json:"p"`
	Attempts int      `json:"r"`
	Limit    int      `json:"lim,omitempty"`
	Join     int      `json:"j,omitempty"` // 1: it does nothing
	Paused   bool     `json:"paused,omitempty"`
}

// A Definition is what a partition knows: of each field of its definitions the value, and the rules of its triggers.
type Definition struct {
	Fields map[string]string
	Rules  map[string]Due // by ID, with the position that a new one begins at
}

// ErrLater is returned for operations that come too late.
var ErrLater = errors.New("a later operation was there before")

// taskField is what fields of tasks begin with.
const taskField = "task:"

// NewDefinition returns one without anything.
func NewDefinition() *Definition { return &Definition{map[string]string{}, map[string]Due{}} }

// Task defines a task.
func (d *Definition) Task(task string, def TaskDef) {
	text, _ := json.Marshal(def) // it has nothing that cannot be
	d.Fields[taskField+task] = string(text)
}

// Target adds a task to those that a source's end concerns. Results are s, f, and k for skipped runs; of these fails alone selects
// the f that the task handles.
func (d *Definition) Target(source, results, task string, fails bool) {
	kind := "e"
	if fails {
		kind = "f"
	}
	for _, result := range results {
		field := string(result) + ":" + source
		d.Fields[field] = strings.TrimSpace(d.Fields[field] + " " + kind + task)
	}
}

// Define has a partition know d in place of old: an operation, which may be repeated until a later one; then its error is ErrLater. With
// whole d is all that it has to know.
func (s *Scheduler) Define(ctx context.Context, n int, operation int64, old, d *Definition, whole bool) error {
	all := steps(old, d)
	return s.tell(ctx, n, operation, slices.Concat(all[:]...), whole)
}

// steps returns the changes that make d of old, in the order in which they have to be made: first those of the tasks, since a token for an
// unknown task is lost; then those of what concerns them, since an end without targets is lost, too; and then those of the triggers, whose
// times begin at once.
func steps(old, d *Definition) (steps [3][]any) {
	for _, field := range keysOf(old.Fields, d.Fields) {
		text, there := d.Fields[field]
		step := 1
		if there && strings.HasPrefix(field, taskField) {
			step = 0
		}
		if text != old.Fields[field] {
			steps[step] = append(steps[step], obj{"field": field, "value": text})
		}
	}
	for _, id := range keysOf(old.Rules, d.Rules) {
		if due := d.Rules[id]; due != old.Rules[id] {
			due.ID = id
			steps[2] = append(steps[2], due)
		}
	}
	return steps
}

// keysOf returns the keys of both, in order.
func keysOf[V any](old, now map[string]V) []string {
	all := maps.Clone(old)
	maps.Copy(all, now)
	return slices.Sorted(maps.Keys(all))
}

// tell has a partition make changes, or with whole know these alone.
func (s *Scheduler) tell(ctx context.Context, n int, operation int64, changes []any, whole bool) error {
	for len(changes) > 0 {
		some := changes[:min(len(changes), PerCall/2)]
		changes = changes[len(some):]
		ask := obj{"operation": operation, "changes": some, "whole": whole, "unfinished": whole && len(changes) > 0}
		for more := 2; more == 2; {
			if err := s.do(ctx, "define", n, ask, &more); err != nil {
				return err
			}
			if more == 0 {
				return ErrLater
			}
		}
	}
	return nil
}
