package schedulers

import (
	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
)

var flagOfScheduler = extension.Flag{Name: flagScheduler, Usage: "`NAME` of the scheduler (default the only one)", Default: ""}

func atMost(of string, most int) extension.Flag {
	return extension.Flag{Name: flagLimit, Usage: "at most `N` " + of, Default: most}
}

func commands() []extension.Command { return append(lookCommands(), askCommands()...) }

func lookCommands() []extension.Command {
	return []extension.Command{
		{Call: "ls", Usage: "list jobs: last and next times, what became of their last runs", Run: runLs, Flags: []extension.Flag{flagOfScheduler}, Examples: []string{"PROG schedule ls"}},
		{Call: "show [JOB]", Usage: "show a job: its triggers, its definition", Run: runShow, Flags: []extension.Flag{flagOfScheduler}, Examples: []string{"PROG schedule show nightly"}},
		{Call: "next [JOB]", Usage: "list the logical times to come", Run: runNext, Flags: []extension.Flag{flagOfScheduler, atMost("times", 10)}, Examples: []string{"PROG schedule next --limit 5"}},
		{
			Call: "grid [JOB]", Usage: "show the tasks of a job at its last times", Run: runGrid,
			Flags:    []extension.Flag{flagOfScheduler, atMost("times", 30), {Name: "before", Usage: "before this `TIME`: " + timeHelp, Default: ""}},
			Examples: []string{"PROG schedule grid nightly"},
		},
		{
			Call: "runs JOB/TASK [TIME]", Usage: "list the runs of a task, or show one", Run: runRuns,
			Flags:    []extension.Flag{flagOfScheduler, atMost("times", 30), {Name: "state", Usage: "only those in this `STATE`, such as failed", Default: ""}},
			Examples: []string{"PROG schedule runs nightly/report --state failed", "PROG schedule runs nightly/report last"},
		},
		{
			Call: "worker", Usage: "run the jobs of an app that has no code: their tasks are commands", Work: work,
			Flags: []extension.Flag{
				{Name: flagScheduler, Usage: "`NAME` of the scheduler", Default: defaultName},
				{Name: "allow-exec", Usage: "run commands: who may store jobs can run any command as this user", Default: false},
				{Name: "concurrency", Usage: "at most `N` runs at once", Default: 8},
			},
			Examples: []string{"PROG schedule worker --allow-exec"},
		},
		{
			Call: "logs JOB/TASK TIME", Usage: "print what a run has written", Run: runLogs,
			Flags: []extension.Flag{
				flagOfScheduler, {Name: "follow", Usage: "go on until the run has ended", Default: false}, {Name: "attempt", Usage: "only of this `ATTEMPT`, as in 1.2", Default: ""},
			},
			Examples: []string{"PROG schedule logs nightly/report last --follow"},
		},
		{Call: "ops [ID]", Usage: "list what was asked for, and what became of it", Run: runOps, Flags: []extension.Flag{flagOfScheduler, atMost("operations", 20)}, Examples: []string{"PROG schedule ops"}},
	}
}

func askCommands() []extension.Command {
	wait := []extension.Flag{
		flagOfScheduler,
		{Name: flagID, Usage: "`ID` of the operation: repeated, it is the same one", Default: ""},
		{Name: flagNoWait, Usage: "do not wait until a worker has done it", Default: false},
	}
	only := extension.Flag{Name: "only", Usage: "without what hangs on it", Default: false}
	return []extension.Command{
		{
			Call: "apply FILE...", Usage: "put the jobs of files in place of those of the same names", Run: runApply, Changes: true,
			Flags:    append(wait, extension.Flag{Name: flagDryRun, Usage: "say what would change, and apply nothing", Default: false}),
			Examples: []string{"PROG schedule apply nightly.yaml", "PROG schedule apply jobs/*.yaml --dry-run"},
		},
		{
			Call: "rm JOB", Usage: "remove a job: what waits is void, what runs may end", Run: runRemove, Changes: true,
			Flags:    append(wait, extension.Flag{Name: "force", Usage: "although tasks of other jobs wait for its tasks", Default: false}),
			Examples: []string{"PROG schedule rm nightly"},
		},
		{
			Call: "activate JOB[/TASK] TIME", Usage: "run tasks now, done or not, and then what hangs on them", Run: runRerun(schedule.OpActivate), Changes: true,
			Flags: append(wait, only), Examples: []string{"PROG schedule activate nightly/report last", "PROG schedule activate nightly 2026-11-20"},
		},
		{
			Call: "clear JOB[/TASK] TIME", Usage: "make void what tasks have at a time, and what hangs on them, and run nothing", Run: runRerun(schedule.OpClear), Changes: true,
			Flags: append(wait, only), Examples: []string{"PROG schedule clear nightly/report last"},
		},
		{
			Call: "cancel JOB/TASK TIME", Usage: "end a run: nothing follows from it", Run: runRerun(schedule.OpCancel), Changes: true,
			Flags: wait, Examples: []string{"PROG schedule cancel nightly/report last"},
		},
		{
			Call: "backfill JOB[/TRIGGER]", Usage: "run past times that have not run", Run: runBackfill, Changes: true,
			Flags: append(wait,
				extension.Flag{Name: "from", Usage: "from this `TIME` on: " + timeHelp, Default: ""},
				extension.Flag{Name: "to", Usage: "before this `TIME` (default now)", Default: ""},
				extension.Flag{Name: "latest", Usage: "the newest first", Default: false}),
			Examples: []string{"PROG schedule backfill nightly --from 2026-01-01 --yes"},
		},
	}
}
