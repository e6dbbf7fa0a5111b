package jobs

import (
	"bytes"
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
	var document yaml.Node
	err := documents.Decode(&document)
	for ; err == nil; err = documents.Decode(&document) {
		j, line := &Job{}, document.Content[0].Line
		c := &checker{lines: map[any]int{nil: line}}
		c.read(document.Content[0], reflect.ValueOf(j).Elem(), "job")
		if len(c.faults) == 0 {
			c.job(j)
			c.place, c.part = "job", j
			c.when(lineOf[j.Name] > 0, "the job of line %d has the name %q, too", lineOf[j.Name], j.Name)
			lineOf[j.Name] = line
		}
		all, faults = append(all, j), append(faults, c.faults...)
	}
	if err != io.EOF {
		return nil, append(faults, Fault{Place: "file", Reason: strings.TrimPrefix(err.Error(), "yaml: ")})
	}
	if len(all) == 0 {
		faults = append(faults, Fault{Place: "file", Reason: "there is no job in it"})
	}
	return all, faults
}

// read reads a node into what a field of that name is.
func (c *checker) read(n *yaml.Node, to reflect.Value, name string) {
	c.lines[to.Addr().Interface()] = n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	_, moment := to.Interface().(time.Time)
	switch kind := to.Kind(); {
	case kind == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		c.read(n, to.Elem(), name)
	case kind == reflect.Struct && !moment && n.Kind != yaml.MappingNode:
		c.fault(n.Line, name, "fields with their values are wanted")
	case kind == reflect.Struct && !moment:
		c.fields(n, to, name)
	case kind == reflect.Slice && n.Kind != yaml.SequenceNode:
		c.fault(n.Line, name, "a list is wanted")
	case kind == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			c.read(item, to.Index(i), name)
		}
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		c.fault(n.Line, name, "a value is wanted")
	default:
		if err := scalar(n.Value, to); err != nil {
			c.fault(n.Line, name, "%v", err)
		}
	}
}

func (c *checker) fields(n *yaml.Node, to reflect.Value, name string) {
	known := map[string]reflect.Value{} // fields by name, not valid once they are read
	for i := range to.NumField() {
		key, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		known[key] = to.Field(i)
	}
	for pair := range slices.Chunk(n.Content, 2) {
		key := pair[0].Value
		switch field, there := known[key]; {
		case !there:
			others := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
			c.fault(pair[0].Line, name, "there is no field %q, but %s", key, others)
		case !field.IsValid():
			c.fault(pair[0].Line, name, "%s is there twice", key)
		default:
			known[key] = reflect.Value{}
			c.read(pair[1], field, key)
		}
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
