// A type is one idea: it has few methods and few fields.

package house_test

import (
	"fmt"
	"go/ast"
	"path"
	"testing"
)

// membersMost is how many methods a type has at most, and how many fields a struct.
const membersMost = 25

// larger are the types with more, and why. The numbers only fall: a type that has fewer now fails
// the test until its number is lowered, or its line deleted.
var larger = map[string]struct {
	methods, fields int
	why             string
}{
	"internal/test/redistest.Server":  {36, 0, "what one can do to a server of a test"},
	"internal/keys.Keys":              {30, 0, "one method for each kind of key: nothing else builds one"},
	"internal/inspect.PartitionState": {0, 28, "the JSON of a partition, docs/json.md"},
	"rebalance.machine":               {28, 28, "the state machine of a member, which is pure, and its golden scripts"},
	"internal/test/model.executor":    {0, 27, "the state of the model, compared as a value"},
	"internal/test/model.Ownership":   {26, 0, "the steps of the model"},
}

func TestTypesHaveFewMembers(t *testing.T) {
	methods, fields := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		in := path.Dir(s.path)
		if in == "." {
			in = "runnel"
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := receiver(d); name != "" {
					methods[in+"."+name]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok {
						fields[in+"."+ts.Name.Name] = membersOf(ts)
					}
				}
			}
		}
	}
	check := func(what, name string, n, allowed int) {
		switch most := max(allowed, membersMost); {
		case n > most:
			t.Errorf("%s has %d %s, want %d at most: it is more than one idea", name, n, what, most)
		case allowed > 0 && n < allowed:
			t.Errorf("%s has %d %s, fewer than %d: lower its number in larger", name, n, what, allowed)
		}
	}
	for name, n := range fields {
		check("fields", name, n, larger[name].fields)
		check("methods", name, methods[name], larger[name].methods)
	}
	for name := range larger {
		if _, ok := fields[name]; !ok {
			t.Errorf("%s is no type: delete it from larger", name)
		}
	}
}

// receiver is the name of the type that a method is of, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	for t := f.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			panic(fmt.Sprintf("a receiver is a %T", t))
		}
	}
}

// membersOf counts the fields of a struct and the methods of an interface.
func membersOf(ts *ast.TypeSpec) (n int) {
	var list []*ast.Field
	switch x := ts.Type.(type) {
	case *ast.StructType:
		list = x.Fields.List
	case *ast.InterfaceType:
		list = x.Methods.List
	}
	for _, f := range list {
		n += max(1, len(f.Names))
	}
	return n
}
