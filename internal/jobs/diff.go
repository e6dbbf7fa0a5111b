package jobs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Diff returns what is different in a job that takes the place of another one, nil for none, in words.
func Diff(old, now *Job) (changes []string) {
	if old == nil {
		return []string{"new"}
	}
	was, is := partsOf(old), partsOf(now)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, place := range slices.Sorted(maps.Keys(all)) {
		a, b := was[place], is[place]
		switch {
		case !a.IsValid():
			changes = append(changes, place+" is new")
		case !b.IsValid():
			changes = append(changes, place+" is gone")
		default:
			for i := range a.NumField() {
				if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
					changes = append(changes, fmt.Sprintf("%s: %s was %+v, is %+v", place, a.Type().Field(i).Name, x, y))
				}
			}
		}
	}
	return changes
}

// partsOf returns what a job consists of, by place.
func partsOf(j *Job) map[string]reflect.Value {
	parts := map[string]reflect.Value{"job": reflect.ValueOf(Job{Description: j.Description})}
	for _, t := range j.Triggers {
		parts[triggerKind+" "+t.Name] = reflect.ValueOf(t)
	}
	for _, t := range j.Tasks {
		parts[taskKind+" "+t.Name] = reflect.ValueOf(t)
	}
	return parts
}
