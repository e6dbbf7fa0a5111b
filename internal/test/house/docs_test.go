// The documents name what the code has: variables, examples, files, test vectors.

package house_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/keys"
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
	for _, path := range append(sources, "env.go", "webhook/serve.go") {
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
		t.Errorf("docs/settings.md and docs/cli.md name %q, the code reads %q", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(code)))
	}
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestFirstPagesShowExamples holds every piece of Go in README.md, docs/guide.md and docs/stages.md to the
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
	blocks := goBlock.FindAllStringSubmatch(readDoc(t, "README.md")+readDoc(t, "docs/guide.md")+readDoc(t, "docs/stages.md")+readDoc(t, "docs/schedule.md"), -1)
	if len(blocks) < 8 {
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

var anyBlock = regexp.MustCompile("(?s)```(?:go|js)\n(.*?)```")

// The code in docs/extensions.md is that of the tiny extension, which tests run.
func TestExtensionsAreExplainedByTheirExample(t *testing.T) {
	files, err := filepath.Glob("internal/test/notes/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %q: %v", files, err)
	}
	var code strings.Builder
	for _, path := range files {
		code.WriteString(readDoc(t, path))
	}
	blocks := anyBlock.FindAllStringSubmatch(readDoc(t, "docs/extensions.md"), -1)
	if len(blocks) < 7 {
		t.Fatalf("found %d pieces of code", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("not in internal/test/notes:\n%s", block[1])
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

var fenced = regexp.MustCompile("(?s)\n```.*?\n```\n") // code, which may look like links
var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksOfDocsLeadSomewhere(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("found %q: %v", docs, err)
	}
	for _, path := range append(docs, "README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		for _, target := range link.FindAllStringSubmatch(fenced.ReplaceAllString(readDoc(t, path), ""), -1) {
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

func TestProtocolNamesEveryKindOfKeys(t *testing.T) {
	text := readDoc(t, "docs/protocol.md")
	for _, kind := range keys.Kinds {
		if !kind.Old && !strings.Contains(text, "`__"+kind.Name+":") {
			t.Errorf("docs/protocol.md does not say what %s is", kind.Name)
		}
	}
}
