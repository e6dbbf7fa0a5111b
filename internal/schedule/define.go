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

// Define has a partition know d in place of old: an operation, which may be repeated until a later one; then its error is ErrLater.
func (s *Scheduler) Define(ctx context.Context, n int, operation int64, old, d *Definition) error {
	set, gone := changed(old.Fields, d.Fields)
	rules, lost := changed(old.Rules, d.Rules)
	for len(set)+len(gone)+len(rules)+len(lost) > 0 {
		room := PerCall / 2
		some := func(all *[]string) (now []string) {
			k := min(len(*all), room)
			now, *all, room = (*all)[:k], (*all)[k:], room-k
			return now
		}
		// What goes goes first, and triggers come last.
		fields, ask := map[string]string{}, obj{"operation": operation}
		for _, field := range some(&set) {
			fields[field] = d.Fields[field]
		}
		ask["set"], ask["gone"] = fields, some(&gone)
		if len(set)+len(gone) == 0 {
			var starts []Due
			for _, id := range some(&rules) {
				starts = append(starts, d.Rules[id])
			}
			ask["rules"] = starts
		}
		ask["lost"] = some(&lost)
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

// changed returns the keys whose values in now are new, and those that are gone, in order.
func changed[V comparable](old, now map[string]V) (set, gone []string) {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was, there := old[key]; !there || was != now[key] {
			set = append(set, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, there := now[key]; !there {
			gone = append(gone, key)
		}
	}
	return set, gone
}
