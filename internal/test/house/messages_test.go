// Messages are short and constant, and each that an operator can act on names its section of docs/troubleshooting.md.

package house_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// product reports whether a file is one of those that log for an operator.
func (s source) product() bool {
	for _, dir := range []string{"internal/test/", "examples/", "bench/", "runneltest/", "cli/testdata/"} {
		if strings.HasPrefix(s.path, dir) {
			return false
		}
	}
	return !s.test()
}

var heading = regexp.MustCompile(`(?m)^### (.+)$`)

// Every section of docs/troubleshooting.md belongs to one message, and the other way round.
func TestTroubleshootingHasASectionForEachMessage(t *testing.T) {
	text, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
		sections = append(sections, strings.ReplaceAll(strings.ToLower(h[1]), " ", "-"))
	}
	named, used := map[string]string{}, map[string]bool{} // constant -> section
	for _, s := range sources(t) {
		if !s.product() {
			continue
		}
		if strings.HasPrefix(s.path, "internal/help/") {
			for name, value := range constants(s.file) {
				if name != "at" {
					named[name] = strings.TrimPrefix(value, "see docs/troubleshooting.md#")
				}
			}
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "help" {
					used[n.Sel.Name] = true
				}
			case *ast.BasicLit:
				if strings.Contains(n.Value, "troubleshooting.md") {
					t.Errorf("%s: %s belongs into internal/help", s.path, n.Value)
				}
			}
			return true
		})
	}
	for name := range named {
		if !used[name] {
			t.Errorf("no message ends in help.%s", name)
		}
	}
	want := slices.Sorted(maps.Values(named))
	if got := slices.Sorted(slices.Values(sections)); !slices.Equal(got, want) {
		t.Errorf("docs/troubleshooting.md has %q,\nmessages end in %q", got, want)
	}
}

// constants returns the string constants of a file by name.
func constants(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, e := range v.Values {
				if text, ok := stringOf(e, out); ok {
					out[v.Names[i].Name] = text
				}
			}
		}
	}
	return out
}

// stringOf evaluates a string of literals and known constants.
func stringOf(e ast.Expr, known map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := known[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		x, ok1 := stringOf(e.X, known)
		y, ok2 := stringOf(e.Y, known)
		return x + y, ok1 && ok2
	}
	return "", false
}

var (
	logMethods = map[string]int{ // where the message stands
		"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "LogAttrs": 2,
		"line": 1, // of an Outage
	}
	loggers     = regexp.MustCompile(`^(l|t)$|(^|\.)(log|Log|Logger)(\(.*\))?$`)
	attrs       = regexp.MustCompile(`^slog\.(String|Int|Int64|Bool|Duration|Time|Any)$`)
	shortAndDry = regexp.MustCompile(`^[a-z][a-z ,]{3,38}[a-z]$`)
	keyRow      = regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\| ")
	quotedKey   = regexp.MustCompile("`(\\w+)`")
)

// Operators grep for messages, so a message is a short constant. Varying parts are in keys that
// docs/operating.md lists.
func TestLogMessagesAreShortConstantsWithKnownKeys(t *testing.T) {
	known := documentedKeys(t) // used?
	messages := 0
	for _, s := range sources(t) {
		if !s.product() {
			continue
		}
		if s.path == "internal/worker/logbatch.go" {
			for _, message := range constants(s.file) {
				if messages++; !shortAndDry.MatchString(message) {
					t.Errorf("%s logs %q", s.path, message)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := s.fset.Position(call.Pos())
			message, keys, ok := logCall(call)
			if ok && message != nil {
				text, constant := stringOf(message, nil)
				if passedOn := fmt.Sprintf("%s %s", s.path, types.ExprString(message)); !constant && passedOn != "internal/outage/outage.go message" && passedOn != "internal/worker/logbatch.go first.what" {
					t.Errorf("%s: the message is no constant", at)
				} else if messages++; constant && !shortAndDry.MatchString(text) {
					t.Errorf("%s logs %q", at, text)
				}
			}
			for _, k := range keys {
				key, _ := stringOf(k, nil)
				if _, in := known[key]; !in {
					t.Errorf("%s: docs/operating.md lists no key %q", at, key)
				}
				known[key] = true
			}
			return true
		})
	}
	for key, used := range known {
		if !used {
			t.Errorf("docs/operating.md lists %q, which no line has", key)
		}
	}
	if messages < 60 {
		t.Errorf("found %d messages", messages)
	}
}

// documentedKeys has the keys of docs/operating.md.
func documentedKeys(t *testing.T) map[string]bool {
	text, err := os.ReadFile("docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Log\n")
	table, _, _ = strings.Cut(table, "\n## ")
	known := map[string]bool{}
	for _, row := range keyRow.FindAllStringSubmatch(table, -1) {
		for _, key := range quotedKey.FindAllStringSubmatch(row[1], -1) {
			known[key[1]] = false
		}
	}
	return known
}

// logCall returns the message and the keys of a call that logs, or that makes attributes.
func logCall(call *ast.CallExpr) (message ast.Expr, keys []ast.Expr, ok bool) {
	name := types.ExprString(call.Fun)
	if attrs.MatchString(name) {
		return nil, call.Args[:1], true
	}
	sel, isSel := call.Fun.(*ast.SelectorExpr)
	if !isSel || !loggers.MatchString(types.ExprString(sel.X)) {
		return nil, nil, false
	}
	rest := call.Args
	if at, logs := logMethods[sel.Sel.Name]; logs && len(call.Args) > at {
		message, rest = call.Args[at], call.Args[at+1:]
	} else if sel.Sel.Name != "With" {
		return nil, nil, false
	}
	for i := 0; i+1 < len(rest); i += 2 {
		if _, isCall := rest[i].(*ast.CallExpr); isCall {
			break // attributes, met by themselves
		}
		keys = append(keys, rest[i])
	}
	return message, keys, true
}
