package schedulers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/runnel-go/runnel/internal/extension"
	"github.com/runnel-go/runnel/internal/schedule"
)

const (
	flagScheduler = "scheduler" // names it, where an app has several
	flagLimit     = "limit"
)

// A request is a call of a command, with what its arguments name: a job, and perhaps a part of it, and a logical time.
type request struct {
	*extension.Env
	*scheduler
	most int // --limit
	job  string
	part string // a task, or a trigger; "" for the whole job
	at   time.Time
}

// resolve looks up what arguments name, as the words of the call have it: JOB, a TASK of it, TIME.
func resolve(ctx context.Context, env *extension.Env, words []string) (*request, error) {
	n, most := len(words), env.Flags.Int(flagLimit)
	if len(env.Args) > n && !strings.Contains(strings.Join(words, ""), "...") {
		return nil, extension.Usagef("unexpected argument %q", env.Args[n])
	}
	if env.Flags.IsSet(flagLimit) && (most < 1 || most > 1000) {
		return nil, extension.Usagef("--%s %d is not between 1 and 1 000", flagLimit, most)
	}
	s, err := one(ctx, env.Client, env.Flags.String(flagScheduler))
	r, args := &request{Env: env, scheduler: s, most: most}, append(slices.Clone(env.Args), make([]string, n)...)
	for i := 0; i < n && err == nil; i++ {
		switch word := words[i]; {
		case word == "[JOB]", strings.HasPrefix(word, "JOB"):
			err = r.find(args[i], word)
		case word == "TIME" && args[i] == "":
			err = extension.Usagef("at which logical time? %s", timeHelp)
		case strings.Contains(word, "TIME"):
			err = r.when(ctx, args[i])
		}
	}
	return r, err
}

// A runner does a command.
type runner func(ctx context.Context, r *request) error

// command returns a command of a scheduler. The lines of example are example calls.
func command(call, usage, example string, run runner, flags ...extension.Flag) extension.Command {
	name := extension.Flag{Name: flagScheduler, Usage: "`NAME` of the scheduler (default the only one)", Default: ""}
	return extension.Command{
		Call: call, Usage: usage, Flags: append(flags, name), Examples: strings.Split(example, "\n"),
		Run: func(ctx context.Context, env *extension.Env) error {
			r, err := resolve(ctx, env, strings.Fields(call)[1:])
			if err != nil {
				return err
			}
			return run(ctx, r)
		},
	}
}

// operation returns a command that asks for operations.
func operation(call, usage, example string, run runner, flags ...extension.Flag) extension.Command {
	c := command(call, usage, example, run, append(flags,
		extension.Flag{Name: "id", Usage: "`ID` of the operation: repeated, it is the same one", Default: ""},
		extension.Flag{Name: "no-wait", Usage: "do not wait until a worker has done it", Default: false})...)
	c.Changes = true
	return c
}

func atMost(of string, most int) extension.Flag {
	return extension.Flag{Name: flagLimit, Usage: "at most `N` " + of, Default: most}
}

func commands() []extension.Command {
	only := extension.Flag{Name: "only", Usage: "without what hangs on it", Default: false}
	return []extension.Command{
		command("ls", "list jobs: last and next times, what became of their last runs",
			"PROG schedule ls", runLs),
		command("show [JOB]", "show a job: its triggers, its definition",
			"PROG schedule show nightly", runShow),
		command("next [JOB...]", "list the logical times to come",
			"PROG schedule next --limit 5", runNext, atMost("times", 10)),
		command("grid [JOB]", "show the tasks of a job at its last times",
			"PROG schedule grid nightly", runGrid, atMost("times", 30),
			extension.Flag{Name: "before", Usage: "before this `TIME`: " + timeHelp, Default: ""}),
		command("runs JOB/TASK [TIME]", "list the runs of a task, or show one",
			"PROG schedule runs nightly/report --state failed\nPROG schedule runs nightly/report last", runRuns, atMost("times", 30),
			extension.Flag{Name: "state", Usage: "only those in this `STATE`, such as failed", Default: ""}),
		command("logs JOB/TASK TIME", "print what a run has written",
			"PROG schedule logs nightly/report last --follow", runLogs,
			extension.Flag{Name: "follow", Usage: "go on until the run has ended", Default: false, NoPage: true},
			extension.Flag{Name: "attempt", Usage: "only of this `ATTEMPT`, as in 1.2", Default: ""}),
		command("ops [ID]", "list what was asked for, and what became of it",
			"PROG schedule ops", runOps, atMost("operations", 20)),
		workCommand(),
		operation("apply FILE...", "put the jobs of files in place of those of the same names",
			"PROG schedule apply nightly.yaml\nPROG schedule apply jobs/*.yaml --dry-run", runApply,
			extension.Flag{Name: "dry-run", Usage: "say what would change, and apply nothing", Default: false}),
		operation("rm JOB", "remove a job: what waits is void, what runs may end",
			"PROG schedule rm nightly", runRemove,
			extension.Flag{Name: "force", Usage: "although tasks of other jobs wait for its tasks", Default: false}),
		operation("activate JOB[/TASK] TIME", "run tasks now, done or not, and then what hangs on them",
			"PROG schedule activate nightly/report last\nPROG schedule activate nightly 2026-11-20",
			runRerun(schedule.OpActivate), only),
		operation("clear JOB[/TASK] TIME", "make void what tasks have at a time, and what hangs on them, and run nothing",
			"PROG schedule clear nightly/report last", runRerun(schedule.OpClear), only),
		operation("cancel JOB/TASK TIME", "end a run: nothing follows from it",
			"PROG schedule cancel nightly/report last", runRerun(schedule.OpCancel)),
		operation("backfill JOB[/TRIGGER]", "run past times that have not run",
			"PROG schedule backfill nightly --from 2026-01-01 --yes", runBackfill,
			extension.Flag{Name: "from", Usage: "from this `TIME` on: " + timeHelp, Default: ""},
			extension.Flag{Name: "to", Usage: "before this `TIME` (default now)", Default: ""},
			extension.Flag{Name: "latest", Usage: "the newest first", Default: false}),
	}
}

// defaultName is the name of a scheduler without code.
const defaultName = "schedule"

func workCommand() extension.Command {
	return extension.Command{
		Call: "worker", Usage: "run the jobs of an app that has no code: their tasks are commands",
		Flags: []extension.Flag{
			{Name: flagScheduler, Usage: "`NAME` of the scheduler", Default: defaultName},
			{Name: "allow-exec", Usage: "run commands: who may store jobs can run any command as this user", Default: false},
			{Name: "concurrency", Usage: "at most `N` runs at once", Default: 8},
		},
		Examples: []string{"PROG schedule worker --allow-exec"},
		Work: func(app any, flags extension.Flags) (says string, err error) {
			n, exec := flags.Int("concurrency"), flags.Bool("allow-exec")
			if n < 1 {
				return "", extension.Usagef("--concurrency %d is not positive", n)
			}
			says = "tasks that are commands are left to other workers: this one has no --allow-exec"
			if exec {
				says = "commands run as this user"
			}
			return says, Declare(app, cmp.Or(flags.String(flagScheduler), defaultName), n, exec)
		},
	}
}
