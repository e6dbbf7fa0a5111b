package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/runnel-go/runnel/internal/families"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	metricName = regexp.MustCompile(`\brunnel_[a-z_]+`)
	labelsOf   = regexp.MustCompile(`(runnel_[a-z_]+)\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`([a-z]+)=~?"`)
)

// familyOf returns the family of a series, or of a part of a histogram; nil for none.
func familyOf(series string) *families.Family {
	for _, f := range everyFamily() {
		part := strings.TrimPrefix(series, f.Name)
		if part == "" || f.Kind == families.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, part) {
			return f
		}
	}
	return nil
}

// known checks that a query names existing metrics and labels.
func known(t *testing.T, where, query string) {
	t.Helper()
	names := metricName.FindAllString(query, -1)
	if len(names) == 0 {
		t.Errorf("%s: no metric in %q", where, query)
	}
	for _, name := range names {
		if familyOf(name) == nil {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, m := range labelsOf.FindAllStringSubmatch(query, -1) {
		for _, label := range labelName.FindAllStringSubmatch(m[2], -1) {
			if f := familyOf(m[1]); f != nil && !slices.Contains(f.Labels, label[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], label[1])
			}
		}
	}
}

func TestDashboardShowsWhatThereIs(t *testing.T) {
	var board struct {
		Title  string
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../deploy/grafana.json")), &board); err != nil {
		t.Fatal(err)
	}
	panels := 0
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		panels++
		for _, target := range p.Targets {
			known(t, p.Title, target.Expr)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
	}
	if panels < 10 {
		t.Errorf("%d panels", panels)
	}
	for _, v := range board.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			known(t, v.Name, q["query"].(string))
		}
	}
}

func TestEveryAlertHasAnEntryInTheRunbook(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../deploy/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	runbook := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (Runnel\w+)$`).FindAllStringSubmatch(read(t, "../docs/operating.md"), -1) {
		runbook[m[1]] = true
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			known(t, r.Alert, r.Expr)
			if !runbook[r.Alert] {
				t.Errorf("%s has no entry in docs/operating.md", r.Alert)
			}
			delete(runbook, r.Alert)
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s has no summary or severity", r.Alert)
			}
		}
	}
	for name := range runbook {
		t.Errorf("docs/operating.md has an entry for %s, which is no alert", name)
	}
}

// The alerts fire as deploy/alerts.test.yaml specifies.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed, so the alerts are not tried: scripts/setup-test.sh installs it")
	}
	const cases = "../deploy/alerts.test.yaml"
	read(t, cases) // a cached test result depends only on files that the test itself reads
	read(t, "../deploy/alerts.yaml")
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", cases).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Every deployment gives a worker more time to stop than it takes to drain.
func TestDeploymentsLetWorkersDrain(t *testing.T) {
	const drain = 8 + 1 // Grace by default, and a second
	for path, pattern := range map[string]string{
		"../deploy/shop-worker.service": `(?m)^TimeoutStopSec=(\d+)$`,
		"../deploy/kubernetes.yaml":     `(?m)terminationGracePeriodSeconds: (\d+)$`,
		"../deploy/Dockerfile":          `docker stop --time (\d+)`,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
		if m == nil {
			t.Errorf("%s: no %s", path, pattern)
			continue
		}
		if n, _ := strconv.Atoi(m[1]); n <= drain {
			t.Errorf("%s waits %d s, a worker may take %d", path, n, drain)
		}
	}
	var docs []map[string]any
	for _, text := range strings.Split(read(t, "../deploy/kubernetes.yaml"), "\n---\n") {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	if len(docs) != 2 || docs[0]["kind"] != "Deployment" || docs[1]["kind"] != "HorizontalPodAutoscaler" {
		t.Errorf("%v", docs)
	}
	known(t, "autoscaler", regexp.MustCompile(`sum\(.*\)`).FindString(read(t, "../deploy/kubernetes.yaml")))
}
