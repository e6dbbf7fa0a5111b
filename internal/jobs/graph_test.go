package jobs

import (
	"fmt"
	"strings"
	"testing"
)

func graphOf(t *testing.T, texts ...string) (*Graph, []Fault) {
	t.Helper()
	all := map[string]*Job{}
	for _, text := range texts {
		j := jobOf(t, text)
		if faults := Check(j); len(faults) > 0 {
			t.Fatal(faults)
		}
		all[j.Name] = j
	}
	return NewGraph(all)
}

const diamond = `{"job": "d", "triggers": [{"name": "t", "cron": "@daily"}], "tasks": [
	{"name": "end", "after": ["task/left", "task/right"]},
	{"name": "left", "after": ["task/first"]}, {"name": "right", "after": ["task/first"]},
	{"name": "first", "after": ["trigger/t"]},
	{"name": "tidy", "after": ["task/end?"]}, {"name": "alarm", "on_failure": ["task/left", "task/right"]}, {"name": "told", "after": ["task/alarm"]}]}`

func names(all []Source) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

func TestGraph(t *testing.T) {
	g, faults := graphOf(t, diamond, `{"job": "other", "tasks": [{"name": "later", "after": ["d/task/right"]}]}`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if got := names(g.Tasks("d")); got != "first left right end tidy alarm told" {
		t.Errorf("in their order: %s", got)
	}
	for _, tt := range []struct{ root, want string }{
		{"first", "first left right end tidy later"},
		{"right", "right end tidy later"},
		{"tidy", "tidy"},
		{"alarm", "alarm told"},
	} {
		if got := names(g.Closure(Source{Job: "d", Name: tt.root})); got != tt.want {
			t.Errorf("on %s hang %s, want %s", tt.root, got, tt.want)
		}
	}
	if got := names(g.Closure(Source{Job: "d", Name: "right"}, Source{Job: "d", Name: "left"}, Source{Job: "d", Name: "none"})); got != "left right end tidy later" {
		t.Errorf("on two hang %s", got)
	}
	if got := g.Needs(Source{Job: "other", Name: "later"}); len(got) != 1 || got[0].String() != "d/task/right" {
		t.Errorf("later needs %v", got)
	}
}

func TestFaultsOfAGraph(t *testing.T) {
	for _, tt := range []struct {
		jobs []string
		want string
	}{
		{[]string{`{"job": "j", "tasks": [{"name": "a", "after": ["trigger/t"]}]}`}, "j/task/a: j/trigger/t is not there: job j has no trigger"},
		{[]string{`{"job": "j", "triggers": [{"name": "x", "cron": "@daily"}], "tasks": [{"name": "a", "after": ["trigger/t"]}]}`}, "j/task/a: j/trigger/t is not there: the triggers of job j are x"},
		{[]string{`{"job": "j", "tasks": [{"name": "a", "after": ["fx/task/b"]}]}`}, "j/task/a: fx/task/b is not there: there is no job fx"},
		{[]string{`{"job": "j", "tasks": [{"name": "a", "after": ["task/a"]}]}`}, "j/task/a: it waits for itself: j/task/a → j/task/a"},
		{[]string{`{"job": "j", "tasks": [{"name": "a", "after": ["k/task/b"]}, {"name": "c", "after": ["task/a"]}]}`, `{"job": "k", "tasks": [{"name": "b", "after": ["j/task/c"]}]}`},
			"j/task/a: it waits for itself: j/task/a → j/task/c → k/task/b → j/task/a"},
		{[]string{`{"job": "j", "tasks": [{"name": "a", "after": ["task/b"]}, {"name": "b", "on_failure": ["task/a"]}]}`}, "j/task/a: it waits for itself: j/task/a → j/task/b → j/task/a"},
	} {
		_, faults := graphOf(t, tt.jobs...)
		if len(faults) != 1 || faults[0].Error() != tt.want {
			t.Errorf("%v, want one: %s", faults, tt.want)
		}
	}
}

// A chain of the most tasks is not too deep, and a wide one is not slow.
func TestALargeGraph(t *testing.T) {
	j := &Job{Name: "j", Triggers: []Trigger{{Name: "t", Cron: "@daily"}}}
	for n := range MostTasks {
		after := "trigger/t"
		if n > 0 {
			after = fmt.Sprint("task/t", n-1)
		}
		j.Tasks = append(j.Tasks, Task{Name: fmt.Sprint("t", n), After: []string{after}})
	}
	g, faults := NewGraph(map[string]*Job{"j": j})
	if all := g.Closure(Source{Job: "j", Name: "t0"}); len(faults) > 0 || len(all) != MostTasks || all[MostTasks-1].Name != "t9999" {
		t.Errorf("%v; %d tasks", faults, len(all))
	}
}

// A cycle is found behind and before others that are in none, however long it is.
func TestALongCycle(t *testing.T) {
	j := &Job{Name: "j", Triggers: []Trigger{{Name: "t", Cron: "@daily"}}, Tasks: []Task{{Name: "last", After: []string{"task/t0"}}}}
	for n := range MostTasks - 1 {
		after := []string{fmt.Sprint("task/t", (n+1)%(MostTasks-1))}
		if n == 5 {
			after = append(after, "trigger/t")
		}
		j.Tasks = append(j.Tasks, Task{Name: fmt.Sprint("t", n), After: after})
	}
	_, faults := NewGraph(map[string]*Job{"j": j})
	if len(faults) != 1 || strings.Count(faults[0].Reason, "→") != MostTasks-1 || strings.Contains(faults[0].Reason, "last") {
		t.Errorf("%.300v", faults)
	}
}
