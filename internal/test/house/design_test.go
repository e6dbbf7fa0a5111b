// DESIGN.md is short, its paths name functions that exist, and its map names every package.

package house_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFirstPagesAreShort(t *testing.T) {
	for path, most := range map[string]int{"DESIGN.md": 350, "README.md": 220} {
		if n := strings.Count(readDoc(t, path), "\n"); n > most {
			t.Errorf("%s has %d lines, want at most %d", path, n, most)
		}
	}
}

var (
	// step is a file and the functions in it: `file.go`: `function`, `Type.method`
	step = regexp.MustCompile("`([^`\\s]+\\.go)`:((?:,?\\s+`[^`\\s/]+`)+)")
	name = regexp.MustCompile("`([^`]+)`")
)

func TestDesignNamesFunctionsThatExist(t *testing.T) {
	declared := map[string][]string{} // by file
	for _, s := range sources(t) {
		declared[s.path] = functionsOf(s.file)
	}
	steps := step.FindAllStringSubmatch(readDoc(t, "DESIGN.md"), -1)
	if len(steps) < 50 {
		t.Fatalf("found %d steps", len(steps))
	}
	for _, s := range steps {
		for _, f := range name.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(declared[s[1]], f[1]) {
				t.Errorf("DESIGN.md: %s declares no %s", s[1], f[1])
			}
		}
	}
}

// functionsOf are the functions that a file declares; a method stands behind its type.
func functionsOf(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv == nil {
			names = append(names, f.Name.Name)
			continue
		}
		of := f.Recv.List[0].Type
		if p, ok := of.(*ast.StarExpr); ok {
			of = p.X
		}
		switch generic := of.(type) {
		case *ast.IndexExpr:
			of = generic.X
		case *ast.IndexListExpr:
			of = generic.X
		}
		names = append(names, of.(*ast.Ident).Name+"."+f.Name.Name)
	}
	return names
}

var goFile = regexp.MustCompile("`([\\w/]+\\.go)`")

func TestDesignNamesFilesThatExist(t *testing.T) {
	for _, doc := range []string{"DESIGN.md", "CONTRIBUTING.md", "docs/design.md", "docs/protocol.md"} {
		for _, f := range goFile.FindAllStringSubmatch(readDoc(t, doc), -1) {
			if !slices.ContainsFunc(sources(t), func(s source) bool { return strings.HasSuffix("/"+s.path, "/"+f[1]) }) {
				t.Errorf("%s: there is no %s", doc, f[1])
			}
		}
	}
}

func TestDesignMapsEveryPackage(t *testing.T) {
	_, section, _ := strings.Cut(readDoc(t, "DESIGN.md"), "\n## Packages\n")
	_, list, _ := strings.Cut(section, "```text\n")
	list, _, _ = strings.Cut(list, "```")
	var mapped []string
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 1 {
			mapped = append(mapped, strings.Replace(words[0], "(root)", "", 1))
		}
	}
	packages, _ := importsOfModule(t)
	packages = slices.DeleteFunc(packages, func(p string) bool { return strings.HasPrefix(p, "examples/") })
	for _, p := range packages {
		if !slices.Contains(mapped, p) {
			t.Errorf("DESIGN.md does not map package %q", p)
		}
	}
	for _, p := range mapped {
		if !slices.Contains(packages, p) {
			t.Errorf("DESIGN.md maps %q, which is no package", p)
		}
	}
}
