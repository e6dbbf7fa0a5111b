//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-go/runnel"
	"github.com/runnel-go/runnel/internal/appview"
	ischedule "github.com/runnel-go/runnel/internal/schedule"
	"github.com/runnel-go/runnel/schedule"
)

const (
	// sinceVariable is when the trigger starts, in seconds.
	sinceVariable  = "RUNNEL_CHAOS_SINCE"
	beatPartitions = 5
	trigger        = "pulse/trigger/beat"
)

var beatTasks = []string{"a", "b", "c"}

// declareScheduler declares the scheduler that every worker has beside its stream: each second three tasks, of which some fail once.
// note is told of each attempt.
func declareScheduler(app *runnel.App, note func(r *schedule.Run)) {
	s := schedule.New(app, "beats", &schedule.Options{Partitions: beatPartitions})
	since, _ := strconv.ParseInt(os.Getenv(sinceVariable), 10, 64)
	does := func(ctx context.Context, r *schedule.Run) error {
		note(r)
		dawdle(ctx)
		if r.Attempt == 1 && rand.N(10) == 0 {
			return errors.New("once")
		}
		return nil
	}
	job := schedule.Job{Triggers: []schedule.Trigger{{Name: "beat", Every: time.Second, Start: time.Unix(since, 0)}}}
	for i, after := range [][]string{{"trigger/beat"}, {"task/a?"}, {"task/a?", "task/b?"}} {
		job.Tasks = append(job.Tasks, schedule.Task{
			Name: beatTasks[i], After: after, Do: does, Retry: &runnel.Retry{Max: 1000, MinBackoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond},
		})
	}
	s.Job("pulse", job)
}

// noting returns what writes a line for each attempt into a file.
func noting(path string) (note func(r *schedule.Run), err error) {
	file, err := os.OpenFile(path+runsSuffix, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return func(r *schedule.Run) {
		fmt.Fprintf(file, "%s at %d, generation %d, attempt %d\n", r.Task, r.Time.Unix(), r.Generation, r.Attempt)
	}, err
}

const runsSuffix = ".runs"

// A beats looks at what has become of the logical times of a round.
type beats struct {
	*scene
	app   *runnel.App
	from  time.Time // of the first one that is judged
	until time.Time // zero: faults go on
}

func (s *scene) beat() (b *beats, end func()) {
	app, _, end := declare(s.sends.way, "beats")
	declareScheduler(app, func(*schedule.Run) {})
	return &beats{scene: s, app: app, from: time.Now()}, end
}

// left says which time has not had all its runs, "" for none.
func (b *beats) left() string {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	client, err := appview.Of(b.app).Client()
	if err != nil {
		return err.Error()
	}
	view := ischedule.New(client, "beats").View()
	state, err := view.Trigger(ctx, beatPartition(trigger), trigger)
	if err != nil || !state.There || state.Position < b.until.UnixMilli() {
		return fmt.Sprintf("trigger %s is %+v, %v\n", trigger, state, err)
	}
	for _, name := range beatTasks {
		task := "pulse/task/" + name
		cells, err := view.Look(ctx, beatPartition(task), []string{task}, b.until.UnixMilli(), 10_000)
		if err != nil {
			return fmt.Sprintf("task %s: %v\n", task, err)
		}
		ended := map[int64]bool{}
		for _, c := range cells[task] {
			if ended[c.Time] = c.State == ischedule.Success || c.State == "crashed"; c.Generation > 1 {
				return fmt.Sprintf("task %s has fired %d times at %d: %+v\n", task, c.Generation, c.Time, c.Cell)
			}
		}
		for at := b.from.Truncate(time.Second).Add(time.Second); at.Before(b.until); at = at.Add(time.Second) {
			if !ended[at.UnixMilli()] {
				i := slices.IndexFunc(cells[task], func(c ischedule.CellAt) bool { return c.Time == at.UnixMilli() })
				return fmt.Sprintf("task %s has not run at %d, cell %d of %+v\n", task, at.Unix(), i, cells[task][max(i, 0):max(i+1, 0)])
			}
		}
	}
	return ""
}

// forgotten has the times judged from when all tasks are known again: what other masters tell a partition that has forgotten its
// tasks before that is lost, and what they told it before is not told again.
func (b *beats) forgotten() {
	awaitNil(b.t, "definition of all tasks", func(ctx context.Context) error {
		client, err := appview.Of(b.app).Client()
		if err != nil {
			return err
		}
		_, known, err := ischedule.New(client, "beats").Ledger().Numbers(ctx, beatPartitions)
		for _, name := range beatTasks {
			if n := beatPartition("pulse/task/" + name); err == nil && known[n] == 0 {
				err = fmt.Errorf("task %s is not known in partition %d", name, n)
			}
		}
		return err
	})
	b.from = time.Now()
}

func beatPartition(source string) int { return runnel.XXHash.Func(source, beatPartitions) }

// twice returns the attempts that were begun more than once. Numbers of what a server has forgotten begin anew.
func (b *beats) twice() (all []string) {
	if b.tender.loses.Load() {
		return nil
	}
	seen := map[string]bool{}
	for _, path := range b.logs {
		text, _ := os.ReadFile(path + runsSuffix) // who does not run it has none
		for line := range strings.Lines(string(text)) {
			if seen[line] {
				all = append(all, line)
			}
			seen[line] = true
		}
	}
	return all
}
