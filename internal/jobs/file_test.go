package jobs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

const file = `# what runs at night
job: nightly
description: all of it
triggers:
  - {name: night, cron: "30 2 * * *", timezone: Europe/Berlin, start: 2026-01-01, catchup: earliest, max_catchup: 30, late: 20h}
tasks:
  - name: orders
    after: [trigger/night]
    exec: [bin/orders, --day, "{date}"]
    retry: &often {max: 3, min_backoff: 1m, max_backoff: 10m}
    timeout: 2h
    limit: 2
  - {name: rates, after: [trigger/night], do: rates, retry: *often}
  - {name: report, after: [task/orders, task/rates], shell: "bin/report > out.csv"}
  - {name: tidy, after: ["task/report?"], shell: "rm -f out.csv"}
  - {name: alarm, on_failure: [task/orders, task/report], exec: [bin/page, "{job}/{task} {time}"]}
---
{"job": "often", "triggers": [{"name": "t", "every": "90s", "start": "2026-01-01T08:00:00+01:00"}], "tasks": [{"name": "a", "after": ["trigger/t"], "do": "f"}]}
`

func TestParseFile(t *testing.T) {
	all, faults := ParseFile([]byte(file))
	if len(faults) > 0 || len(all) != 2 {
		t.Fatal(faults)
	}
	retry := &Retry{Max: 3, MinBackoff: Duration(time.Minute), MaxBackoff: Duration(10 * time.Minute)}
	want := &Job{
		Name: "nightly", Description: "all of it",
		Triggers: []Trigger{{
			Name: "night", Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Start: at(t, "2026-01-01"), CatchUp: CatchUpEarliest,
			MaxCatchUp: 30, Late: Duration(20 * time.Hour),
		}},
		Tasks: []Task{
			{Name: "orders", After: []string{"trigger/night"}, Exec: []string{"bin/orders", "--day", "{date}"}, Retry: retry, Timeout: Duration(2 * time.Hour), Limit: 2},
			{Name: "rates", After: []string{"trigger/night"}, Handler: "rates", Retry: retry},
			{Name: "report", After: []string{"task/orders", "task/rates"}, Shell: "bin/report > out.csv"},
			{Name: "tidy", After: []string{"task/report?"}, Shell: "rm -f out.csv"},
			{Name: "alarm", OnFailure: []string{"task/orders", "task/report"}, Exec: []string{"bin/page", "{job}/{task} {time}"}},
		},
	}
	if !reflect.DeepEqual(all[0], want) {
		t.Errorf("read %+v\nwant %+v", all[0], want)
	}
	if !all[1].Triggers[0].Start.Equal(at(t, "2026-01-01T07:00:00Z")) {
		t.Errorf("start %v", all[1].Triggers[0].Start)
	}
	if _, faults := NewGraph(map[string]*Job{"nightly": all[0], "often": all[1]}); len(faults) > 0 {
		t.Error(faults)
	}
}

func TestFaultsOfFilesTellTheirLine(t *testing.T) {
	const head = "job: j\ntriggers:\n  - {name: t, cron: \"@daily\"}\ntasks:\n  - {name: a, after: [trigger/t]}\n"
	for _, tt := range []struct{ file, want string }{
		{"", "file: there is no job in it"},
		{"# nothing\n", "file: there is no job in it"},
		{"job: [", "file: line 1: did not find expected node content"},
		{"job: j\n\ttasks: x\n", "file: line 2: found a tab character that violates indentation"},
		{"- job: j\n", "line 1: job: fields with their values are wanted"},
		{"just a text\n", "line 1: job: fields with their values are wanted"},
		{"job: j\nowner: me\n" + head[7:], `line 2: job: there is no field "owner", but description, job, tasks, triggers`},
		{"job: j\n" + head, "line 2: job: job is there twice"},
		{"job: j\ntasks: a\n", "line 2: tasks: a list is wanted"},
		{"job: j\ntasks:\n", "line 2: tasks: a list is wanted"},
		{"job: j\ntasks: []\n", "line 2: tasks: a job has at least one"},
		{"job: j\n", "line 1: tasks: a job has at least one"},
		{head + "  - b\n", "line 6: tasks: fields with their values are wanted"},
		{head + "  - {name: b, after: task/a}\n", "line 6: after: a list is wanted"},
		{head + "  - {name: b, after: [task/a], exec: [[x]]}\n", "line 6: exec: a value is wanted"},
		{head + "  - {name: b, after: [task/a], exec: [null]}\n", "line 6: exec: a value is wanted"},
		{head + "  - name: b\n    after: [task/a]\n    limit: many\n", `line 8: limit: "many" is no whole number`},
		{head + "  - {name: b, after: [task/a], do: f, limit: 1.5}\n", `line 6: limit: "1.5" is no whole number`},
		{head + "  - name: b\n    after: [task/a]\n    do: f\n    timeout: 5\n", `line 9: timeout: "5" is no duration, such as 90s or 1h30m`},
		{head + "  - name: b\n    after: [task/a]\n    do: f\n    retry:\n      max: 2\n      first: 1m\n", `line 11: retry: there is no field "first", but factor, jitter, max, max_backoff, min_backoff`},
		{head + "  - {name: b, after: [task/a], do: f, retry: {max: 2, factor: fast}}\n", `line 6: factor: "fast" is no number`},
		{head + "  - {name: b, after: [task/a], do: f, retry: 3}\n", "line 6: retry: fields with their values are wanted"},
		{head + "  - name: b\n    after: [task/a]\n    do: f\n    shell: x\n", "line 6: task b: it has more than one of do, exec and shell"},
		{head + "  - {after: [task/a]}\n", `line 6: task 2: name "": a name has`},
		{head + "  - {name: b, after: [task/a, task/a]}\n", "line 6: task b: it waits for j/task/a twice"},
		{"job: j\ntriggers:\n  - name: t\n    cron: 30 25 * * *\ntasks:\n  - {name: a, after: [trigger/t]}\n", "line 3: trigger t: cron: end of range (25) above maximum (23)"},
		{"job: j\ntriggers:\n  - name: t\n    cron: \"@daily\"\n    start: tomorrow\ntasks:\n  - {name: a, after: [trigger/t]}\n", `line 5: start: "tomorrow" is no time, such as 2026-01-31`},
		{"job: j\ntriggers:\n  - {name: t, every: 1h}\ntasks:\n  - {name: a, after: [trigger/t]}\n", "line 3: trigger t: every needs a start"},
		{"job: j\ntriggers: {name: t}\ntasks:\n  - {name: a, after: [trigger/t]}\n", "line 2: triggers: a list is wanted"},
		{"job: [j]\ntasks:\n  - {name: a, after: [trigger/t]}\n", "line 1: job: a value is wanted"},
		{head + "  - name: b\n    after: [task/a]\n    do: f\n    retry: {max: 2, factor: .inf}\n", `line 9: factor: ".inf" is no number`},
		{head + "---\n" + head, `line 7: job: the job of line 1 has the name "j", too`},
		{head + "---\njob: k\ntasks:\n  - {name: a}\n", "line 9: task a: it has neither after nor on_failure"},
		{strings.Repeat("#", MostBytes+1), "file: 4194305 bytes, at most 4194304"},
		{"job: &a [*a]\n", "line 1: "},
		{head + "  - &a {name: b, after: [task/a], retry: *a}\n", "line 6: "},
	} {
		_, faults := ParseFile([]byte(tt.file))
		if len(faults) == 0 || !strings.HasPrefix(faults[0].Error(), tt.want) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.file[:min(len(tt.file), 300)], faults, tt.want)
		}
	}
}

// Nothing that a file may say ends the program, and what is read without faults is stored and read again.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte("job: &a {x: *a}"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, faults := ParseFile(data)
		if len(faults) > 0 {
			return
		}
		for _, j := range all {
			stored, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			if back := jobOf(t, string(stored)); !reflect.DeepEqual(back, j) {
				t.Fatalf("%s:\n%+v\n%+v", stored, back, j)
			}
		}
	})
}
