package jobs

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
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
	documents := yaml.NewDecoder(bytes.NewReader(data))
	lineOf := map[string]int{}
	for {
		var document yaml.Node
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, append(faults, syntaxFault(err))
		}
		j, r := &Job{}, &reader{lines: map[string]int{}}
		r.read(&document, reflect.ValueOf(j).Elem(), "job")
		if len(r.faults) == 0 {
			for _, f := range Check(j) {
				f.Line = cmp.Or(r.lines[f.Place], r.lines["job"])
				r.faults = append(r.faults, f)
			}
			if line, twice := lineOf[j.Name]; twice {
				r.faults = append(r.faults, Fault{Place: "job", Reason: fmt.Sprintf("the job of line %d has the name %q, too", line, j.Name), Line: r.lines["job"]})
			}
			lineOf[j.Name] = r.lines["job"]
		}
		all, faults = append(all, j), append(faults, r.faults...)
	}
	if len(all) == 0 {
		faults = append(faults, Fault{Place: "file", Reason: "there is no job in it"})
	}
	return all, faults
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxFault(err error) Fault {
	text := err.Error()
	f := Fault{Place: "file", Reason: syntaxLine.ReplaceAllString(text, "")}
	if m := syntaxLine.FindStringSubmatch(text); m != nil && m[1] != "" {
		f.Line, _ = strconv.Atoi(m[1])
	}
	return f
}

// A reader reads one document.
type reader struct {
	faults []Fault
	lines  map[string]int // by place
}

func (r *reader) fault(at *yaml.Node, place, reason string, args ...any) {
	r.faults = append(r.faults, Fault{place, fmt.Sprintf(reason, args...), at.Line})
}

// read reads a node into what a field of that name is.
func (r *reader) read(n *yaml.Node, to reflect.Value, place string) {
	for n.Kind == yaml.DocumentNode || n.Kind == yaml.AliasNode {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		} else {
			n = n.Content[0]
		}
	}
	switch to.Interface().(type) {
	case time.Time, Duration:
		r.scalar(n, to, place)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		r.read(n, to.Elem(), place)
	case reflect.Struct:
		r.fields(n, to, place)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			r.fault(n, place, "a list is wanted")
			return
		}
		kind := ""
		switch to.Type().Elem() {
		case reflect.TypeFor[Trigger]():
			kind = triggerKind
		case reflect.TypeFor[Task]():
			kind = taskKind
		}
		for i, item := range n.Content {
			at := place
			if kind != "" {
				at = placeOf(kind, nameIn(item), i)
				r.lines[at] = item.Line
			}
			one := reflect.New(to.Type().Elem()).Elem()
			r.read(item, one, at)
			to.Set(reflect.Append(to, one))
		}
	default:
		r.scalar(n, to, place)
	}
}

// nameIn returns the name that a mapping has, "" for none.
func nameIn(n *yaml.Node) string {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			return n.Content[i+1].Value
		}
	}
	return ""
}

func (r *reader) fields(n *yaml.Node, to reflect.Value, place string) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, place, "fields with their values are wanted")
		return
	}
	if r.lines[place] == 0 {
		r.lines[place] = n.Line
	}
	known := map[string]int{}
	var names []string
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		known[name], names = i, append(names, name)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at, there := known[key.Value]
		switch {
		case !there:
			slices.Sort(names)
			r.fault(key, place, "there is no field %q, but %s", key.Value, strings.Join(names, ", "))
			continue
		case seen[key.Value]:
			r.fault(key, place, "%s is there twice", key.Value)
			continue
		}
		seen[key.Value] = true
		inside := strings.TrimPrefix(place+": "+key.Value, "job: ")
		if r.lines[inside] == 0 {
			r.lines[inside] = value.Line
		}
		r.read(value, to.Field(at), inside)
	}
}

// scalar reads a text, a number, a time, or a duration.
func (r *reader) scalar(n *yaml.Node, to reflect.Value, place string) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, place, "a value is wanted")
		return
	}
	if to.Type() == reflect.TypeFor[time.Time]() {
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if at, err := time.Parse(layout, n.Value); err == nil {
				to.Set(reflect.ValueOf(at.UTC()))
				return
			}
		}
		r.fault(n, place, "%q is no time, such as 2026-01-31 or 2026-01-31T08:00:00Z", n.Value)
		return
	}
	if text, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := text.UnmarshalText([]byte(n.Value)); err != nil {
			r.fault(n, place, "%v", err)
		}
		return
	}
	switch to.Kind() {
	case reflect.String:
		to.SetString(n.Value)
	case reflect.Int:
		i, err := strconv.Atoi(n.Value)
		if err != nil {
			r.fault(n, place, "%q is no whole number", n.Value)
		}
		to.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || f != f {
			r.fault(n, place, "%q is no number", n.Value)
		}
		to.SetFloat(f)
	}
}
