// Files and functions are short, exported names have comments, errors and the log follow one style.

package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A source is one Go file of the module.
type source struct {
	path string // from the root, with slashes
	fset *token.FileSet
	file *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		s := source{path: filepath.ToSlash(path), fset: token.NewFileSet()}
		s.file, err = parser.ParseFile(s.fset, path, nil, parser.ParseComments)
		all = append(all, s)
		return err
	})
	return all, err
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil || len(all) < 100 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if n := s.fset.File(s.file.FileStart).LineCount(); n > 400 {
			t.Errorf("%s has %d lines", s.path, n)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.lines(f) > 60 {
				t.Errorf("%s: %s has %d lines", s.path, f.Name.Name, s.lines(f))
			}
		}
	}
}

// A file of tests of the root begins with a comment: the promise that it holds.
func TestFilesOfTestsSayWhatTheyHold(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() && !strings.Contains(s.path, "/") && (len(s.file.Comments) == 0 || s.file.Comments[0].Pos() > s.file.Package) {
			t.Errorf("%s does not begin with the promise that it holds", s.path)
		}
	}
}

// Every exported name of a package that others may import has a comment that begins with it.
func TestExportedNamesHaveAComment(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.file.Name.Name == "main" || strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && !begins(d.Doc, d.Name.Name) {
					t.Errorf("%s: no comment says what %s does", s.path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, name := range undocumented(d, spec) {
						t.Errorf("%s: no comment says what %s is", s.path, name)
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func begins(doc *ast.CommentGroup, name string) bool {
	return doc != nil && regexp.MustCompile(`^((A|An|The) )?`+name+`\b`).MatchString(doc.Text())
}

// undocumented returns the exported names of a declaration without a comment. A type needs its own;
// for a value that of its group or line is enough.
func undocumented(d *ast.GenDecl, spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && !begins(d.Doc, spec.Name.Name) && !begins(spec.Doc, spec.Name.Name) {
			names = append(names, spec.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// Of all packages only the command line handles signals: Run installs nothing.
func TestOnlyTheCommandLineHandlesSignals(t *testing.T) {
	var found []string
	for _, s := range sources(t) {
		for _, i := range s.file.Imports {
			if i.Path.Value == `"os/signal"` && !s.test() {
				found = append(found, s.path)
			}
		}
	}
	if want := []string{"cli/signal.go", "cli/signal_unix.go", "examples/ownmain/main.go"}; !slices.Equal(found, want) {
		t.Errorf("os/signal is imported by %q, want %q", found, want)
	}
}

var (
	unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	// nouns are settings and commands, which an error may begin with.
	nouns = regexp.MustCompile(`^(RUNNEL_\w+|WorkerName|KeyLayout|LeaderPoll|Stream|Processor|Partitions|MaxLen|Overflow|DedupWindow|MaxRecord|Start|Partitioner|OnError|Lease|JoinDelay|Prefetch|PrefetchBytes|ReadConns|Retry|Redis|CLIENT|INFO|Durability|MinReplicas|Timeout|Concurrency)\b`)
)

// Errors are lower case and name the operation, not that it failed.
func TestErrorsAndCommentsFollowTheStyle(t *testing.T) {
	for _, s := range sources(t) {
		for _, c := range s.file.Comments {
			if unfinished.MatchString(c.Text()) {
				t.Errorf("%s: %q", s.path, c.Text())
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || s.test() || len(call.Args) == 0 {
				return true
			}
			fn, _ := call.Fun.(*ast.SelectorExpr)
			lit, _ := call.Args[0].(*ast.BasicLit)
			if fn == nil || lit == nil || fn.Sel.Name != "Errorf" && fn.Sel.Name != "New" || lit.Kind != token.STRING {
				return true
			}
			pkg, _ := fn.X.(*ast.Ident)
			text, err := strconv.Unquote(lit.Value)
			if err != nil || pkg == nil || pkg.Name != "fmt" && pkg.Name != "errors" {
				return true
			}
			if text != "" && text[0] >= 'A' && text[0] <= 'Z' && !nouns.MatchString(text) || strings.Contains(text, "failed to") || strings.HasSuffix(text, ".") {
				t.Errorf("%s: an error says %q", s.path, text)
			}
			return true
		})
	}
}
