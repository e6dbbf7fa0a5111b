// Licenses lists the licenses of all modules that the programs, tests and tools of this
// repository are built from, and fails where one is not known or not allowed:
//
//	go run ./internal/licenses
//
// A license is known by its text, of which known.txt has sums: to add a dependency
// with another text, read it and add the line that is printed.
package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// dirs are the modules of the repository.
var dirs = []string{".", "otel", "bench", "web/browsertest"}

// systems are those that something may be built for: a dependency may be of one only.
var systems = []string{"linux", "darwin", "windows"}

// allowed are the licenses that a dependency may have.
var allowed = []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "MPL-2.0", "0BSD", "Unlicense"}

//go:embed known.txt
var known string

// A dependency is a module, with the modules of this repository that need it.
type dependency struct {
	path, version, dir string
	of                 []string
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	table, err := parse(known)
	if err != nil {
		return err
	}
	all, err := dependencies()
	if err != nil {
		return err
	}
	w, faults := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), []string{}
	fmt.Fprintln(w, "MODULE\tVERSION\tLICENSE\tOF")
	for _, d := range all {
		license, fault := licenseOf(table, d.dir)
		if fault != "" {
			license = "?"
			faults = append(faults, fmt.Sprintf("%s %s: %s", d.path, d.version, fault))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.path, d.version, license, strings.Join(d.of, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d of %d modules:\n%s", len(faults), len(all), strings.Join(faults, "\n"))
	}
	fmt.Fprintf(out, "%d modules, all under licenses that are allowed\n", len(all))
	return nil
}

// dependencies asks go what is built for each system, tests and all.
func dependencies() ([]dependency, error) {
	found := map[string]*dependency{}
	for _, dir := range dirs {
		for _, system := range systems {
			cmd := exec.Command("go", "list", "-test", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./...")
			var errs bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), &errs
			text, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("go list in %s for %s: %w: %s", dir, system, err, errs.String())
			}
			for line := range strings.Lines(string(text)) {
				words := strings.Split(strings.TrimSpace(line), "\t")
				if len(words) != 3 || words[0] == "github.com/runnel-go/runnel" {
					continue
				}
				d := found[words[0]+"@"+words[1]]
				if d == nil {
					d = &dependency{path: words[0], version: words[1], dir: words[2]}
					found[words[0]+"@"+words[1]] = d
				}
				if !slices.Contains(d.of, dir) {
					d.of = append(d.of, dir)
				}
			}
		}
	}
	// What browsers get is in the repository itself.
	all := []dependency{{path: "web/assets/vendor", version: "-", dir: "web/assets/vendor", of: []string{"."}}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all, nil
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)([.-].*)?$`)

// licenseOf tells the licenses of a module, or what is wrong with them.
func licenseOf(table map[string]string, dir string) (license, fault string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err.Error()
	}
	var licenses []string
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err.Error()
		}
		sum := sumOf(string(text))
		name, ok := table[sum]
		if !ok {
			return "", fmt.Sprintf("%s is a text that is not known: read it, and add to internal/licenses/known.txt a line with %s and its name", filepath.Join(dir, e.Name()), sum)
		}
		for _, one := range strings.Fields(name) {
			if one != "AND" && !slices.Contains(allowed, one) {
				return "", one + " is not allowed"
			}
		}
		licenses = append(licenses, name)
	}
	if len(licenses) == 0 {
		return "", "there is no file with a license in " + dir
	}
	return strings.Join(licenses, " AND "), ""
}

var (
	holder = regexp.MustCompile(`(?im)^[\s*#/]*(copyright|\(c\)|©).*$`)
	other  = regexp.MustCompile(`[^a-z0-9]+`)
)

// sumOf is a sum of a text, but for whose it is, signs, and how it is set.
func sumOf(text string) string {
	text = holder.ReplaceAllString(text, "")
	text = strings.TrimSpace(other.ReplaceAllString(strings.ToLower(text), " "))
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// parse reads known.txt: sum and license, a line each.
func parse(text string) (map[string]string, error) {
	table := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, license, ok := strings.Cut(line, " ")
		if !ok || len(sum) != 20 {
			return nil, fmt.Errorf("known.txt: %q is no sum and license", line)
		}
		table[sum] = strings.TrimSpace(license)
	}
	return table, nil
}
