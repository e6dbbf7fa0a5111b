package runnel

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func readDoc(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var variable = regexp.MustCompile(`RUNNEL_[A-Z_]*[A-Z]`)

func TestSettingsNameEveryVariable(t *testing.T) {
	sources, err := filepath.Glob("cli/*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]bool{}
	for _, path := range append(sources, "env.go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, name := range variable.FindAllString(readDoc(t, path), -1) {
			code[name] = true
		}
	}
	documented := map[string]bool{}
	for _, path := range []string{"docs/settings.md", "docs/cli.md"} {
		for _, name := range variable.FindAllString(readDoc(t, path), -1) {
			documented[name] = true
		}
	}
	if !reflect.DeepEqual(documented, code) {
		t.Errorf("docs/settings.md and docs/cli.md name %q, the code reads %q", sortedKeys(documented), sortedKeys(code))
	}
}

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
	settings := readDoc(t, "docs/settings.md")
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

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestFirstPagesShowExamples holds every piece of Go in README.md and docs/guide.md to the
// examples: a program equals one of their files, anything else stands in one.
func TestFirstPagesShowExamples(t *testing.T) {
	files := map[string]string{}
	err := filepath.WalkDir("examples", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			files[path] = readDoc(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlock.FindAllStringSubmatch(readDoc(t, "README.md")+readDoc(t, "docs/guide.md"), -1)
	if len(blocks) < 5 {
		t.Fatalf("found %d pieces of Go", len(blocks))
	}
	for _, block := range blocks {
		program, found := strings.Contains(block[1], "\npackage "), false
		for _, text := range files {
			found = found || text == block[1] || !program && strings.Contains(text, block[1])
		}
		if !found {
			t.Errorf("not in the examples:\n%s", block[1])
		}
	}
}

func TestReadmeNamesEveryExample(t *testing.T) {
	mains, err := filepath.Glob("examples/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("found %q: %v", mains, err)
	}
	readme, overview := readDoc(t, "README.md"), readDoc(t, "examples/doc.go")
	for _, path := range mains {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.Contains(readme, dir) {
			t.Errorf("README.md does not name %s", dir)
		}
		if !strings.Contains(overview, "\n//\t"+filepath.Base(dir)+" ") {
			t.Errorf("examples/doc.go does not name %s", dir)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksOfDocsLeadSomewhere(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("found %q: %v", docs, err)
	}
	for _, path := range append(docs, "README.md", "CHANGELOG.md") {
		for _, target := range link.FindAllStringSubmatch(readDoc(t, path), -1) {
			if strings.Contains(target[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestPartitioningHasTheTestVectors(t *testing.T) {
	if !strings.Contains(readDoc(t, "docs/partitioning.md"), "```text\n"+readDoc(t, "python/testdata/partitioner.txt")+"```") {
		t.Error("docs/partitioning.md does not contain testdata/partitioner.txt as it is")
	}
}
