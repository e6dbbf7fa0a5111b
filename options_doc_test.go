// docs/settings.md has every option with its default.

package runnel

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// settingsRow is a row of a table of settings: option, variable, default.
var settingsRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:`(\\w+)`)? ?\\| (.*?) ?\\| ")

func TestSettingsHaveEveryOptionWithItsDefault(t *testing.T) {
	env := &environment{lookup: func(string) (string, bool) { return "", false }}
	var app Options
	env.app(&app)
	tables := map[string]any{
		"Options":          app,
		"StreamOptions":    env.stream(StreamOptions{}, StreamOptions{}),
		"ProcessorOptions": env.processor(ProcessorOptions{}, ProcessorOptions{}),
		"TaskOptions":      TaskOptions{},
	}
	text, err := os.ReadFile("docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	settings := string(text)
	for name, defaults := range tables {
		_, table, ok := strings.Cut(settings, "`runnel."+name+"`, of a")
		if !ok {
			t.Errorf("no table of %s", name)
			continue
		}
		table, _, _ = strings.Cut(table, "\n`runnel.") // up to the next one
		var rows, fields []string
		said := map[string]string{}
		for _, row := range settingsRow.FindAllStringSubmatch(table, -1) {
			rows, said[row[1]] = append(rows, row[1]), row[3]
		}
		v := reflect.ValueOf(defaults)
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			fields = append(fields, field.Name)
			if want, ok := plainDefault(v.Field(i).Interface()); ok && field.Name != "WorkerName" && said[field.Name] != want {
				t.Errorf("%s.%s: docs/settings.md says the default is %q, want %q", name, field.Name, said[field.Name], want)
			}
		}
		if !slices.Equal(rows, fields) {
			t.Errorf("%s: docs/settings.md has %q, want %q", name, rows, fields)
		}
	}
}

// plainDefault is a default as the table writes it, if it is a plain value.
func plainDefault(v any) (string, bool) {
	switch v.(type) {
	case string, int, int64, bool, time.Duration, Policy, KeyLayout, Overflow:
		return fmt.Sprint(v), true
	}
	return "", false
}
