package jobs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// jobOf reads a job as it is written, in JSON.
func jobOf(t *testing.T, text string) *Job {
	t.Helper()
	j := &Job{}
	if err := json.Unmarshal([]byte(text), j); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return j
}

const night = `"triggers": [{"name": "night", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}]`

func nightly(task string) string {
	return `{"job": "nightly", ` + night + `, "tasks": [{"name": "a", "after": ["trigger/night"]}, ` + task + `]}`
}

func triggered(trigger string) string {
	return `{"job": "j", "triggers": [` + trigger + `], "tasks": [{"name": "a", "after": ["trigger/t"]}]}`
}

func TestFaultsTellPlaceAndReason(t *testing.T) {
	for _, tt := range []struct{ job, want string }{
		{`{"job": "", "tasks": [{"name": "a", "after": ["trigger/t"]}]}`, `job: "": a name has`},
		{`{"job": "a b", "tasks": [{"name": "a", "after": ["trigger/t"]}]}`, `job: "a b": a name has`},
		{`{"job": "runs", "tasks": [{"name": "a", "after": ["trigger/t"]}]}`, `job: the name "runs" is reserved`},
		{`{"job": "j", "tasks": []}`, "tasks: a job has at least one"},
		{nightly(`{"name": "a", "after": ["trigger/night"]}`), "task a: there are two of that name"},
		{nightly(`{"name": "x/y", "after": ["task/a"]}`), `task x/y: name "x/y": a name has`},
		{nightly(`{"after": ["task/a"]}`), `task 2: name "": a name has`},
		{nightly(`{"name": "b"}`), "task b: it has neither after nor on_failure"},
		{nightly(`{"name": "b", "after": ["trigger/night"], "on_failure": ["task/a"]}`), "task b: it has both after and on_failure"},
		{nightly(`{"name": "b", "after": ["task/a", "task/a?"]}`), "task b: it waits for nightly/task/a twice"},
		{nightly(`{"name": "b", "after": ["a"]}`), `task b: "a" is none of trigger/NAME, task/NAME and JOB/task/NAME`},
		{nightly(`{"name": "b", "after": ["job/a"]}`), `task b: "job/a" is none of`},
		{nightly(`{"name": "b", "after": ["task/a b"]}`), `task b: "task/a b": a name has`},
		{nightly(`{"name": "b", "after": ["other/trigger/t"]}`), "is a trigger of another job"},
		{nightly(`{"name": "b", "after": ["trigger/night?"]}`), "a trigger never fails"},
		{nightly(`{"name": "b", "on_failure": ["trigger/night"]}`), `task b: on_failure: "trigger/night" is no task`},
		{nightly(`{"name": "b", "on_failure": ["task/a?"]}`), `task b: on_failure: "task/a?" is no task`},
		{nightly(`{"name": "b", "after": ["task/a"], "need": 2}`), "task b: need 2 of 1"},
		{nightly(`{"name": "b", "on_failure": ["task/a"], "need": 1}`), "task b: need 1 of 0"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "shell": "true"}`), "task b: it has more than one of do, exec and shell"},
		{nightly(`{"name": "b", "after": ["task/a"], "exec": [""]}`), "task b: exec: the command is empty"},
		{nightly(`{"name": "b", "after": ["task/a"], "limit": 2}`), "task b: a join, which does nothing, has no retry, timeout or limit"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "limit": -1}`), "task b: limit -1 is negative"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "timeout": "-1s"}`), "task b: timeout -1s is negative"},
		{nightly(`{"name": "b", "after": ["task/a"], "priority": "urgent"}`), `task b: priority "urgent" is none of high, normal, low, backfill`},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "retry": {"max": 0}}`), "task b: retry: max 0"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "retry": {"max": 2, "min_backoff": "2m", "max_backoff": "1m"}}`), "task b: retry: backoff from 2m0s to 1m0s"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "retry": {"max": 2, "factor": 0.5}}`), "task b: retry: factor 0.5 is below 1"},
		{nightly(`{"name": "b", "after": ["task/a"], "do": "f", "retry": {"max": 2, "jitter": 2}}`), "task b: retry: jitter 2 is above 1"},
		{triggered(`{"name": "t"}`), "trigger t: it has neither every nor cron"},
		{triggered(`{"name": "t", "every": "1h", "cron": "* * * * *", "start": "2026-01-01T00:00:00Z"}`), "trigger t: it has both every and cron"},
		{triggered(`{"name": "t", "every": "1h"}`), "trigger t: every needs a start"},
		{triggered(`{"name": "t", "every": "-1h", "start": "2026-01-01T00:00:00Z"}`), "trigger t: every -1h0m0s"},
		{triggered(`{"name": "t", "every": "1us", "start": "2026-01-01T00:00:00Z"}`), "trigger t: every 1µs: an interval is positive, and whole milliseconds"},
		{triggered(`{"name": "t", "every": "1h", "start": "2026-01-01T00:00:00Z", "timezone": "UTC"}`), "trigger t: timezone is for cron"},
		{triggered(`{"name": "t", "cron": "61 * * * *"}`), "trigger t: cron: "},
		{triggered(`{"name": "t", "cron": "0 0 31 2 *"}`), `trigger t: cron: the times "0 0 31 2 *" never come`},
		{triggered(`{"name": "t", "cron": "* * * * *", "timezone": "Mars/Base"}`), "trigger t: timezone: unknown time zone Mars/Base"},
		{triggered(`{"name": "t", "cron": "* * * * *", "timezone": "Local"}`), `trigger t: timezone: "Local" differs between machines`},
		{triggered(`{"name": "t", "cron": "* * * * *", "start": "1969-01-01T00:00:00Z"}`), "trigger t: 1969-01-01T00:00:00Z: logical times are from 1970 on"},
		{triggered(`{"name": "t", "cron": "* * * * *", "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}`), "trigger t: no time is from start on and before end"},
		{triggered(`{"name": "t", "cron": "* * * * *", "catchup": "all"}`), `trigger t: catchup "all" is none of`},
		{triggered(`{"name": "t", "cron": "* * * * *", "catchup": "none", "max_catchup": 3}`), "trigger t: max_catchup is for times that are caught up"},
		{triggered(`{"name": "t", "cron": "* * * * *", "max_catchup": -1}`), "trigger t: max_catchup -1 is negative"},
		{triggered(`{"name": "t", "cron": "* * * * *", "late": "-1s"}`), "trigger t: late -1s is negative"},
		{triggered(`{"name": "t", "cron": "* * * * *"}, {"name": "t", "cron": "* * * * *"}`), "trigger t: there are two of that name"},
	} {
		faults := Check(jobOf(t, tt.job))
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), tt.want) {
			t.Errorf("%s:\n%v, want one: %s", tt.job, faults, tt.want)
		}
	}
}

func TestAGoodJobHasNoFaults(t *testing.T) {
	j := jobOf(t, `{"job": "nightly", "description": "all of it", "triggers": [
		{"name": "night", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "start": "2026-01-01T00:00:00Z", "end": "2027-01-01T00:00:00Z",
		 "offset": "-5m", "catchup": "latest", "max_catchup": 30, "late": "20h"},
		{"name": "often", "every": "90s", "start": "2026-01-01T00:00:00Z", "catchup": "none"}],
		"tasks": [{"name": "orders", "after": ["trigger/night"], "exec": ["bin/orders", "--day", "{date}"],
		 "retry": {"max": 3, "min_backoff": "1m", "max_backoff": "10m", "factor": 3, "jitter": -1}, "timeout": "2h", "limit": 2, "priority": "high"},
		{"name": "rates", "after": ["trigger/often"], "do": "rates"},
		{"name": "report", "after": ["task/orders", "task/rates", "fx/task/close"], "need": 2, "shell": "bin/report"},
		{"name": "tidy", "after": ["task/report?"]}, {"name": "alarm", "on_failure": ["task/orders", "fx/task/close"], "do": "alarm"}]}`)
	if faults := Check(j); len(faults) > 0 {
		t.Error(faults)
	}
	stored, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	if back := jobOf(t, string(stored)); !reflect.DeepEqual(back, j) {
		t.Errorf("stored %s\nread as %+v", stored, back)
	}
	if err := json.Unmarshal([]byte(`{"tasks": [{"timeout": "long"}]}`), j); err == nil || !strings.Contains(err.Error(), `"long" is no duration`) {
		t.Error(err)
	}
}

func TestAJobOfTooMuch(t *testing.T) {
	j := &Job{Name: "j"}
	for n := range MostTriggers + 1 {
		j.Triggers = append(j.Triggers, Trigger{Name: fmt.Sprint("t", n), Cron: "@daily"})
	}
	many := Task{Name: "many"}
	for n := range MostNeeds + 1 {
		many.After = append(many.After, fmt.Sprint("trigger/t", n))
	}
	j.Tasks = append(j.Tasks, many)
	for n := range MostTasks {
		j.Tasks = append(j.Tasks, Task{Name: fmt.Sprint("t", n), After: []string{"trigger/t0"}})
	}
	var got []string
	for _, f := range Check(j) {
		got = append(got, f.Error())
	}
	want := "tasks: 10001, a job has at most 10000\ntriggers: 1001, a job has at most 1000\ntask many: it waits for 101, at most 100: put a join between"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
