package mutants

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A variant is the program without one rule: each edit's text replaced by the other.
type variant struct {
	rule  string
	edits []edit
}

// The environment selects a program's variant: the rule, and the texts to replace in scripts as
// pairs, JSON.
const (
	ruleVariable    = "RUNNEL_MUTANT"
	scriptsVariable = "RUNNEL_MUTANT_SCRIPTS"
)

// A program is the tests of a package with all variants in it, built once: a Go function that a
// variant edits is there once more for that variant, and scripts are edited when the program
// starts.
type program struct {
	binary   string
	dir      string // of the package's tests
	variants map[string]variant
	set      []string // variables of each run
}

// build builds the tests of a package, from the module's root, with the variants of all lists, so
// that the packages below are compiled once for all.
func build(t *testing.T, pkg string) *program {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{binary: filepath.Join(t.TempDir(), "mutants.test"), dir: filepath.Join(root, pkg), variants: variants()}
	sources := map[string]string{}
	edits := map[string]map[string][]edit{} // by file and rule
	for _, v := range p.variants {
		for _, e := range v.edits {
			if _, err := e.apply(root); err != nil {
				t.Fatalf("%s: %v", v.rule, err)
			}
			if strings.HasSuffix(e.file, ".lua") {
				continue
			}
			if edits[e.file] == nil {
				edits[e.file] = map[string][]edit{}
			}
			edits[e.file][v.rule] = append(edits[e.file][v.rule], e)
		}
	}
	for file, by := range edits {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if sources[file], err = withVariants(file, string(text), by); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sources[filepath.Join(filepath.Dir(file), "mutant_switch.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar mutantRule = os.Getenv(%q)\n", packageName.FindStringSubmatch(string(text))[1], ruleVariable)
	}
	for _, scripts := range []string{"internal/store/scripts.go", "internal/store/run.go"} {
		text, err := os.ReadFile(filepath.Join(root, scripts))
		if err != nil {
			t.Fatal(err)
		}
		sources[scripts] = newScript.ReplaceAllString(string(text), "redis.NewScript(mutantScript($1))")
	}
	sources["internal/store/mutant_script.go"] = fmt.Sprintf(mutantScript, scriptsVariable)

	overlay := overlay(t, root, sources)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay="+overlay, "-vet=off", "-ldflags=-s -w", "-o", p.binary, "./"+pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("a mutant does not build: %v\n%s", err, out)
	}
	return p
}

// environment is what a run of one variant, "" for none, needs.
func (p *program) environment(rule string) []string {
	var scripts []string
	for _, e := range p.variants[rule].edits {
		if strings.HasSuffix(e.file, ".lua") {
			scripts = append(scripts, e.old, e.new)
		}
	}
	text, _ := json.Marshal(scripts)
	return append(os.Environ(), ruleVariable+"="+rule, scriptsVariable+"="+string(text))
}

var (
	packageName = regexp.MustCompile(`(?m)^package (\w+)$`)
	newScript   = regexp.MustCompile(`(?m)redis\.NewScript\((.+)\)$`)
)

// mutantScript stands in the place of a script's text.
const mutantScript = `package store

import (
	"encoding/json"
	"os"
	"strings"
)

var mutantScripts = func() (texts []string) {
	_ = json.Unmarshal([]byte(os.Getenv(%q)), &texts)
	return texts
}()

func mutantScript(text string) string { return strings.NewReplacer(mutantScripts...).Replace(text) }
`

// withVariants returns a file of Go in which each function that is edited for a rule is there
// once more under another name, edited, and calls that where the program is the rule's variant.
func withVariants(file, text string, by map[string][]edit) (string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	switches := map[int]string{} // by the offset behind the brace of a function
	var copies strings.Builder
	for n, rule := range slices.Sorted(maps.Keys(by)) {
		edited := map[*ast.FuncDecl]string{}
		for _, e := range by[rule] {
			from := strings.Index(text, e.old)
			i := slices.IndexFunc(f.Decls, func(d ast.Decl) bool {
				fn, ok := d.(*ast.FuncDecl)
				return ok && at(fn.Pos()) <= from && from+len(strings.TrimRight(e.old, "\n")) <= at(fn.End())
			})
			if i < 0 {
				return "", fmt.Errorf("%s: what is replaced is not in one function:\n%s", rule, e.old)
			}
			fn := f.Decls[i].(*ast.FuncDecl)
			body, ok := edited[fn]
			if !ok {
				body = text[at(fn.Name.End()):at(fn.End())] + "\n"
			}
			edited[fn] = strings.Replace(body, e.old, e.new, 1)
		}
		for fn, body := range edited {
			name := fmt.Sprintf("%sMutant%d", fn.Name.Name, n)
			call, err := callOf(fn, name)
			if err != nil {
				return "", fmt.Errorf("%s: %w", rule, err)
			}
			switches[at(fn.Body.Lbrace)+1] += fmt.Sprintf(" if mutantRule == %s { %s };", strconv.Quote(rule), call)
			fmt.Fprintf(&copies, "\n%s%s%s", text[at(fn.Type.Func):at(fn.Name.Pos())], name, body)
		}
	}
	var out strings.Builder
	last := 0
	for _, offset := range slices.Sorted(maps.Keys(switches)) {
		out.WriteString(text[last:offset] + switches[offset])
		last = offset
	}
	return out.String() + text[last:] + copies.String(), nil
}

// callOf is a call of a function's copy with its own arguments.
func callOf(fn *ast.FuncDecl, name string) (string, error) {
	if fn.Recv != nil {
		if len(fn.Recv.List[0].Names) == 0 {
			return "", fmt.Errorf("the receiver of %s has no name", fn.Name.Name)
		}
		name = fn.Recv.List[0].Names[0].Name + "." + name
	}
	var args []string
	for _, field := range fn.Type.Params.List {
		for _, arg := range field.Names {
			if arg.Name == "_" {
				return "", fmt.Errorf("a parameter of %s has no name", fn.Name.Name)
			}
			text := arg.Name
			if _, many := field.Type.(*ast.Ellipsis); many {
				text += "..."
			}
			args = append(args, text)
		}
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}

// overlay writes files, and what tells the build to use them in place of, or beside, those of
// the module.
func overlay(t *testing.T, root string, sources map[string]string) (path string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := map[string]string{}
	for file, text := range sources {
		files[filepath.Join(root, filepath.FromSlash(file))] = write(strings.ReplaceAll(file, "/", "_"), text)
	}
	replace, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	return write("overlay.json", string(replace))
}
