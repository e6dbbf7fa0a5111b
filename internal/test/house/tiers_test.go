// A slow test that stays out of the race detector runs where the Makefile names it, and nowhere else.

package house_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestMakefileNamesSlowTestsThatAreNotRaced(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest\w+`).FindAllString(string(makefile), -1)
	found := 0
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test() {
				continue
			}
			if calls := tiersOf(f); calls["Slow"] && calls["Sequential"] {
				found++
				if !slices.Contains(named, f.Name.Name) {
					t.Errorf("%s: the Makefile does not name %s, which tier.Sequential keeps from the race detector", s.path, f.Name.Name)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("%d such tests", found)
	}
}

// tiersOf are the functions of package tier that a test calls.
func tiersOf(f *ast.FuncDecl) map[string]bool {
	calls := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "tier" {
				calls[s.Sel.Name] = true
			}
		}
		return true
	})
	return calls
}
