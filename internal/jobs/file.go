package jobs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// MostBytes is the largest file of jobs.
const MostBytes = 4 << 20

// ParseFile reads jobs as people write them: YAML, so JSON too, one job in each document. Fields are those of Job,
// Trigger and Task; others, and values that are not what a field takes, are faults, with their lines. Where there are
// faults no job is to be used.
func ParseFile(data []byte) (all []*Job, faults []Fault) {
	if len(data) > MostBytes {
		return nil, []Fault{{Place: "file", Reason: fmt.Sprintf("%d bytes, at most %d", len(data), MostBytes)}}
	}
	documents, lineOf := yaml.NewDecoder(bytes.NewReader(data)), map[string]int{}
	for {
		var document yaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, append(faults, Fault{Place: "file", Reason: strings.TrimPrefix(err.Error(), "yaml: ")})
		}
		j, r, line := &Job{}, &reader{lines: map[string]int{}}, document.Content[0].Line
		r.read(document.Content[0], reflect.ValueOf(j).Elem(), "job")
		if len(r.faults) == 0 {
			for _, f := range Check(j) {
				f.Line = cmp.Or(r.lines[f.Place], line)
				r.faults = append(r.faults, f)
			}
			if before := lineOf[j.Name]; before > 0 {
				r.fault(line, "job", "the job of line %d has the name %q, too", before, j.Name)
			}
			lineOf[j.Name] = line
		}
		all, faults = append(all, j), append(faults, r.faults...)
	}
	if len(all) == 0 {
		faults = append(faults, Fault{Place: "file", Reason: "there is no job in it"})
	}
	return all, faults
}

// A reader reads one document.
type reader struct {
	faults []Fault
	lines  map[string]int // by place
}

func (r *reader) fault(line int, place, reason string, args ...any) {
	r.faults = append(r.faults, Fault{place, fmt.Sprintf(reason, args...), line})
}

// read reads a node into what a field of that name is.
func (r *reader) read(n *yaml.Node, to reflect.Value, name string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	_, moment := to.Interface().(time.Time)
	switch kind := to.Kind(); {
	case kind == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		r.read(n, to.Elem(), name)
	case kind == reflect.Struct && !moment:
		r.fields(n, to, name)
	case kind == reflect.Slice && n.Kind != yaml.SequenceNode:
		r.fault(n.Line, name, "a list is wanted")
	case kind == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			r.read(item, to.Index(i), name)
			switch one := to.Index(i).Interface().(type) {
			case Trigger:
				r.lines[placeOf(triggerKind, one.Name, i)] = item.Line
			case Task:
				r.lines[placeOf(taskKind, one.Name, i)] = item.Line
			}
		}
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		r.fault(n.Line, name, "a value is wanted")
	default:
		if err := scalar(n.Value, to); err != nil {
			r.fault(n.Line, name, "%v", err)
		}
	}
}

func (r *reader) fields(n *yaml.Node, to reflect.Value, name string) {
	if n.Kind != yaml.MappingNode {
		r.fault(n.Line, name, "fields with their values are wanted")
		return
	}
	known, seen := map[string]int{}, map[string]bool{}
	for i := range to.NumField() {
		field, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		known[field] = i
	}
	for pair := range slices.Chunk(n.Content, 2) {
		key := pair[0].Value
		i, there := known[key]
		switch {
		case !there:
			others := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
			r.fault(pair[0].Line, name, "there is no field %q, but %s", key, others)
		case seen[key]:
			r.fault(pair[0].Line, name, "%s is there twice", key)
		default:
			r.lines[key] = pair[1].Line
			r.read(pair[1], to.Field(i), key)
		}
		seen[key] = true
	}
}

// scalar reads a text, a number, a time, or a duration.
func scalar(text string, to reflect.Value) (err error) {
	switch at := to.Addr().Interface().(type) {
	case *time.Time:
		*at, err = ParseTime(text)
	case *Duration:
		err = at.UnmarshalText([]byte(text))
	case *int:
		if *at, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("%q is no whole number", text)
		}
	case *float64:
		if *at, err = strconv.ParseFloat(text, 64); err != nil || math.IsInf(*at, 0) || math.IsNaN(*at) { // which could not be stored
			err = fmt.Errorf("%q is no number", text)
		}
	default:
		to.SetString(text)
	}
	return err
}
