package jobs

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Diff returns what is different in a job that takes the place of another one, in words.
func Diff(old, now *Job) (changes []string) {
	add := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	if old.Description != now.Description {
		add("another description")
	}
	diffParts(add, triggerKind, old.Triggers, now.Triggers, func(t Trigger) string { return t.Name })
	diffParts(add, taskKind, old.Tasks, now.Tasks, func(t Task) string { return t.Name })
	return changes
}

// diffParts says which triggers or tasks are new, gone, or have other fields.
func diffParts[P any](add func(string, ...any), kind string, old, now []P, name func(P) string) {
	before := map[string]P{}
	for _, p := range old {
		before[name(p)] = p
	}
	for _, p := range now {
		was, there := before[name(p)]
		delete(before, name(p))
		if !there {
			add("%s %s is new", kind, name(p))
			continue
		}
		a, b := reflect.ValueOf(was), reflect.ValueOf(p)
		for i := range a.NumField() {
			if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
				add("%s %s: %s was %s, is %s", kind, name(p), a.Type().Field(i).Name, textOf(x), textOf(y))
			}
		}
	}
	for _, p := range old {
		if _, gone := before[name(p)]; gone {
			add("%s %s is gone", kind, name(p))
		}
	}
}

func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
