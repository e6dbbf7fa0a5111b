// A test that is slow, or needs a server, and stays out of the race detector runs where the Makefile names it or its package,
// and nowhere else.

package house_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestMakefileNamesSlowTestsThatAreNotRaced(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest\w+`).FindAllString(string(makefile), -1)
	packages := strings.Fields(regexp.MustCompile(`(?m)^OTHERS +:= (.*)$`).FindStringSubmatch(string(makefile))[1])
	found := 0
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test() {
				continue
			}
			if calls := tiersOf(f); calls["Sequential"] && (calls["Slow"] || calls["Server"] || calls["Start"]) {
				found++
				if !slices.Contains(named, f.Name.Name) && !slices.Contains(packages, "./"+path.Dir(s.path)) {
					t.Errorf("%s: the Makefile does not name %s, which tier.Sequential keeps from the race detector", s.path, f.Name.Name)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("%d such tests", found)
	}
}

// tiersOf are the functions of packages tier and redistest that a test calls.
func tiersOf(f *ast.FuncDecl) map[string]bool {
	calls := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && (x.Name == "tier" || x.Name == "redistest") {
				calls[s.Sel.Name] = true
			}
		}
		return true
	})
	return calls
}
