// Packages import only packages below them, and only dependencies that are listed.

package house_test

import (
	"fmt"
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

const module = "github.com/runnel-go/runnel"

// floors lists every package of the module from the ground up, "" being the root. A package imports
// only packages of lower floors. A new package fails the test until it is placed here.
var floors = [][]string{
	{"internal/help", "internal/verdict", "internal/cron"},
	{"rebalance", "codec", "internal/entryid", "internal/guesses", "internal/words", "internal/groupcommit", "internal/keys", "internal/monotime", "internal/coro", "internal/embedded", "internal/rules", "internal/delayqueue", "internal/logqueue", "internal/jobs", "internal/delivery"},
	{"internal/redisconn", "internal/outage"},
	{"internal/store", "internal/test/model"},
	{"internal/leader", "internal/inspect", "internal/keymigrate", "internal/prefetch", "internal/retryqueue", "internal/rows", "internal/schedule", "internal/stage", "internal/webhook"},
	{"internal/worker"},
	{"internal/appview"},
	{"internal/extension"},
	{""},
	{"python"},
	{"internal/records"},
	{"internal/buses", "internal/schedulers", "internal/sets"},
	{"schedule", "stage", "webhook", "window"},
	{"middleware", "runneltest", "internal/families", "internal/test/notes"},
	{"metrics"},
	{"admin"},
	{"internal/targets"},
	{"web", "examples", "metrics/collector"},
	{"cli"},
	{"examples/layout/orders"},
	{"examples/layout/billing"},
	{"cli/runnel", "examples/*", "scripts/recording"},
}

// testTools serve tests: besides tests only runneltest and scripts/recording import them, and they
// import nothing of the module but each other and the embedded server.
var testTools = []string{"internal/test/redistest", "internal/test/servers", "internal/test/exact", "internal/test/faultproxy", "internal/test/history", "internal/test/corpus", "internal/test/tier", "internal/test/slow"}

// testsOnly hold tests and a doc.go, which imports nothing.
var testsOnly = []string{"internal/test/binary", "internal/test/chaos", "internal/test/cluster", "internal/test/conformance", "internal/test/house", "internal/test/mutants", "internal/test/security", "internal/test/upgrade", "internal/test/views"}

// dependencies lists the packages, or single files, that may import each dependency. Tests may
// import all.
var dependencies = map[string][]string{
	"github.com/redis/go-redis/v9": {
		"internal/delayqueue", "internal/redisconn", "internal/store", "internal/leader", "internal/inspect", "internal/keymigrate", "internal/schedule", "internal/stage", "internal/webhook", "internal/worker", "options.go",
		"runneltest", "examples/ownmain", "examples/telemetry", "internal/test/redistest", "internal/test/servers", "internal/test/exact", "internal/test/faultproxy",
	},
	"github.com/bsm/redislock":            {"internal/store", "internal/leader"},
	"github.com/spf13/cobra":              {"cli"},
	"github.com/spf13/pflag":              {"cli"},
	"charm.land/bubbletea/v2":             {"cli"},
	"github.com/charmbracelet/x/ansi":     {"cli"},
	"github.com/vmihailenco/msgpack/v5":   {"codec"},
	"github.com/klauspost/compress":       {"codec"},
	"github.com/pierrec/lz4/v4":           {"codec"},
	"github.com/cespare/xxhash/v2":        {"partitioner.go", "python", "internal/webhook"},
	"github.com/robfig/cron/v3":           {"internal/cron"},
	"code.dny.dev/ssrf":                   {"webhook"},
	"github.com/VictoriaMetrics/metrics":  {"metrics"},
	"github.com/prometheus/client_golang": {"metrics/collector"},
	"github.com/alicebob/miniredis/v2":    {"internal/embedded"},
	"go.yaml.in/yaml/v3":                  {"internal/jobs"},
	"golang.org/x/sync":                   {"internal/worker", "internal/leader", "large.go", "runneltest", "cli", "examples/ownmain"},
	"golang.org/x/sys":                    {"internal/test/history", "internal/test/redistest"},
}

// An imported is one import of one file, its paths relative to the module.
type imported struct {
	pkg  string // of the file
	file string // relative to the module
	path string
}

func (i imported) test() bool { return strings.HasSuffix(i.file, "_test.go") }

func TestImportsPointDown(t *testing.T) {
	packages, imports := importsOfModule(t)
	for _, pkg := range packages {
		if floorOf(pkg) < 0 && !slices.Contains(testTools, pkg) && !slices.Contains(testsOnly, pkg) {
			t.Errorf("package %q is on no floor: place it in internal/test/house/floors_test.go", pkg)
		}
	}
	for _, i := range imports {
		if fault := judge(i); fault != "" {
			t.Error(fault)
		}
	}
}

func TestFloorsRefuse(t *testing.T) {
	for _, tt := range []struct {
		pkg, file, path string
		refused         bool
	}{
		{"", "app.go", module + "/internal/worker", false},
		{"internal/worker", "internal/worker/worker.go", module, true},
		{"internal/worker", "internal/worker/worker.go", module + "/middleware", true},
		{"middleware", "middleware/retry.go", module + "/runneltest", true},
		{"middleware", "middleware/retry_test.go", module + "/runneltest", false},
		{"examples/basic", "examples/basic/main.go", module + "/cli", false},
		{"examples/basic", "examples/basic/main.go", module + "/internal/keys", true},
		{"", "app.go", "github.com/redis/go-redis/v9", true},
		{"", "options.go", "github.com/redis/go-redis/v9", false},
		{"", "app_test.go", "github.com/redis/go-redis/v9", false},
		{"internal/store", "internal/store/conn.go", "github.com/redis/go-redis/v9/maintnotifications", false},
		{"internal/worker", "internal/worker/worker.go", "github.com/bsm/redislock", true},
		{"", "send.go", "github.com/vmihailenco/msgpack/v5", true},
		{"rebalance", "rebalance/assign.go", "golang.org/x/sync/errgroup", true},
		{"rebalance", "rebalance/assign.go", "cmp", false},
		{"rebalance", "rebalance/assign.go", module + "/internal/keys", true},
		{"internal/worker", "internal/worker/worker.go", module + "/internal/test/history", true},
		{"internal/worker", "internal/worker/worker_test.go", module + "/internal/test/history", false},
		{"runneltest", "runneltest/sim.go", module + "/internal/test/history", false},
		{"internal/test/history", "internal/test/history/log.go", module + "/internal/keys", true},
		{"internal/test/chaos", "internal/test/chaos/doc.go", module, true},
		{"cli", "cli/cli.go", "example.com/unknown", true},
		{"cli", "cli/cli_test.go", "example.com/unknown", true},
	} {
		fault := judge(imported{tt.pkg, tt.file, tt.path})
		if (fault != "") != tt.refused {
			t.Errorf("%s imports %s: got %q, want refused = %v", tt.file, tt.path, fault, tt.refused)
		}
	}
}

func TestDependenciesAreExplained(t *testing.T) {
	text, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(explained)
	if want := slices.Sorted(maps.Keys(dependencies)); !slices.Equal(explained, want) {
		t.Errorf("docs/dependencies.md explains %q, want %q", explained, want)
	}
}

// judge returns what is wrong with an import, "" if nothing is.
func judge(i imported) string {
	if i.path == module || strings.HasPrefix(i.path, module+"/") {
		return judgeOwn(i, strings.TrimPrefix(strings.TrimPrefix(i.path, module), "/"))
	}
	if first, _, _ := strings.Cut(i.path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for dependency, users := range dependencies {
		if i.path != dependency && !strings.HasPrefix(i.path, dependency+"/") {
			continue
		}
		if i.test() || slices.Contains(users, i.pkg) && i.pkg != "" || slices.Contains(users, i.file) {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which is for %q", i.file, i.path, users)
	}
	return fmt.Sprintf("%s imports %s, which is no dependency listed in internal/test/house/floors_test.go", i.file, i.path)
}

func judgeOwn(i imported, to string) string {
	tool := slices.Contains(testTools, to)
	switch from, floor := floorOf(i.pkg), floorOf(to); {
	case i.test():
		return ""
	case slices.Contains(testsOnly, i.pkg):
		return i.file + " is no test, in a package of tests"
	case slices.Contains(testTools, i.pkg):
		if !tool && to != "internal/embedded" {
			return fmt.Sprintf("%s is a test tool and imports %s", i.file, to)
		}
	case tool:
		if i.pkg != "runneltest" && i.pkg != "scripts/recording" {
			return fmt.Sprintf("%s imports %s, which serves tests", i.file, to)
		}
	case strings.HasPrefix(i.pkg, "examples/") && strings.HasPrefix(to, "internal/"):
		return fmt.Sprintf("%s imports %s, which a user cannot", i.file, to)
	case floor < 0 || floor >= from:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d)", i.file, from, to, floor)
	}
	return ""
}

// floorOf is the floor of a package of the module, -1 if it has none.
func floorOf(pkg string) int {
	return slices.IndexFunc(floors, func(floor []string) bool {
		return slices.ContainsFunc(floor, func(p string) bool {
			parent, any := strings.CutSuffix(p, "*")
			return p == pkg || any && strings.HasPrefix(pkg, parent)
		})
	})
}

// importsOfModule returns the packages and all imports of all their files, also
// of those for other systems.
func importsOfModule(t *testing.T) (packages []string, imports []imported) {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		pkg := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		packages = append(packages, pkg)
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(pkg+"/"+filepath.Base(file), "/")
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				imports = append(imports, imported{pkg, name, path})
			}
		}
	}
	if len(packages) < 2 || len(imports) == 0 {
		t.Fatalf("found %d packages with %d imports", len(packages), len(imports))
	}
	return packages, imports
}
