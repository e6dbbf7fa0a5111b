// docs/json.md names what commands print.

package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/json.md has a table for everything that commands print, with the fields that it really has.
func TestDocumentNamesEveryFieldOfJSON(t *testing.T) {
	text, err := os.ReadFile("docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for _, section := range strings.Split(string(text), "<!-- ")[1:] {
		name, table, _ := strings.Cut(section, " -->")
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| \\S.* \\| \\S.* \\|$").FindAllStringSubmatch(table, -1) {
			documented[name] = append(documented[name], row[1])
		}
	}
	printed := map[string][]string{}
	for _, dir := range []string{"cli", "internal/inspect", "internal/extension", "internal/sets", "internal/buses", "admin"} {
		jsonFields(t, dir+"/*.go", printed)
	}
	jsonFields(t, "webhook/receive.go", printed)
	delete(printed, "wireEvent") // as receivers get it
	if len(printed) < 10 {
		t.Fatalf("found only %v", printed)
	}
	for name, fields := range printed {
		if !slices.Equal(documented[name], fields) {
			t.Errorf("docs/json.md says of %s %q, it has %q", name, documented[name], fields)
		}
	}
	for name := range documented {
		if printed[name] == nil {
			t.Errorf("docs/json.md has %s, which no command prints", name)
		}
	}
}

// jsonFields adds the types of files that have fields in JSON.
func jsonFields(t *testing.T, pattern string, to map[string][]string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields := fieldsOf(spec); fields != nil {
				if to[spec.Name.Name] != nil {
					t.Errorf("there are two types %s", spec.Name.Name)
				}
				to[spec.Name.Name] = fields
			}
			return true
		})
	}
}

func fieldsOf(spec *ast.TypeSpec) (fields []string) {
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if name != "" && name != "-" {
			fields = append(fields, name)
		}
	}
	return fields
}
