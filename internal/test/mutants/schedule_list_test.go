package mutants

const (
	cellsLua  = "internal/schedule/lua/cells.lua"
	applyLua  = "internal/schedule/lua/apply.lua"
	finishLua = "internal/schedule/lua/finish.lua"
	takeRuns  = "internal/schedule/lua/take.lua"
	freezeLua = "internal/schedule/lua/freeze.lua"
	thawLua   = "internal/schedule/lua/thaw.lua"
	fireLua   = "internal/schedule/lua/fire.lua"
	defineLua = "internal/schedule/lua/define.lua"
	pruneLua  = "internal/schedule/lua/prune.lua"
	beatRuns  = "internal/schedule/lua/beat.lua"

	plainNets      = "TestSim/redis/plain"
	forgettingNets = "TestSim/redis/forgetting"
	restNets       = "TestSim/redis/re-runs-at-rest"
	lateEnds       = "TestLateEndsOfRunsAreRefused/redis"
)

// scheduleMutants are programs without one rule of schedulers, by the package whose tests notice.
var scheduleMutants = map[string][]mutant{
	"internal/schedule": {
		{"tokens are told apart by generation", applyLua, "if x.generation <= e[1] then", "if false then", plainNets},
		{"tokens of void runs do not count", applyLua, "if x.generation < e[2] then", "if false then", "TestVoidTokensDoNotCount/redis"},
		{"old facts make no forgotten cell anew", applyLua, "if g and g.new and forgotten(x) then", "if false then", forgettingNets},
		{"a late attempt ends nothing", finishLua, " and g.a == x.attempt", "", lateEnds},
		{"a late generation ends nothing", finishLua, " and g.g == x.generation", "", lateEnds},
		{"failed attempts are counted", finishLua, "if failed then g.m = g.m + 1 end", "", lateEnds},
		{"a run without its runner is queued again", takeRuns, "again = again + 1\n\t\t\tmake_ready(task, t, g)", "again, g.s = again + 1, 'success'", plainNets},
		{"runs of runners that live are left alone", takeRuns, "if g and (gone[g.r] or ask.unknown", "if g and (next(gone) or ask.unknown", "TestBeats/redis"},
		{"paused jobs start nothing", takeRuns, "elseif g and def.paused then", "elseif false then", "TestPausedRunsAreHeld/redis"},
		{"a frozen run does not run", freezeLua, "enter(task, t, g, to)", "if g.s == 'running' then g.s = to else enter(task, t, g, to) end", lateEnds},
		{"an operation freezes once", freezeLua, "if g and last < op then", "if g and (last < op or last == op and not g.z) then", restNets},
		{"frozen cells only take notes", cellsLua, "not busy[g.s] and not g.z and", "not busy[g.s] and", "TestFrozenCellsTakeNotes/redis"},
		{"a cell has one run at a time", cellsLua, "while def and not busy[g.s] and", "while def and", plainNets},
		{"an end gives its place back", cellsLua, "call('HINCRBY', PLACES, task, -1) < 1", "call('HINCRBY', PLACES, task, 0) < 1", lateEnds},
		{"the end of a single re-run emits nothing", cellsLua, "if result and g.h ~= g.g then", "if result then", restNets},
		{"cells wait for what is run again before them", thawLua, "e[2], some = math.max(e[2], generation), true", "some = true", restNets},
		{"a re-run goes on once", thawLua, "if g and g.z == ask.operation then", "if g and (g.z == ask.operation or g.y == ask.operation) then", restNets},
		{"what a cell has counted counts no more", thawLua, "g.c = math.min(there, g.n - 1)", "g.c = there", restNets},
		{"a trigger fires once", fireLua, " and (seen[2] or '0') == f.position", "", plainNets},
		{"what was held goes on", defineLua, "if task then left = left - admit_next(task, left) end", "", "TestPausedRunsAreHeld/redis"},
		{"cells stay until their facts are acked", pruneLua, "or not g.u or g.u >= ask.looked or", "or not g.u or", "TestForgottenAfterTheLook/redis"},
		{"a trigger fires once all is known", "internal/schedule/define.go", "steps[2] = append(steps[2], due)", "steps[1] = append(steps[1], due)", "TestTriggersFireOnceAllIsKnown/redis"},
		{"a partition that forgot drops no tokens", applyLua, "if call('HEXISTS', DEFS, 'rev') == 0 then", "if false then", "TestAPartitionThatForgotWaits/redis"},
		{"a runner keeps what it names", beatRuns, "if not named[cell] then", "if true then", "TestBeats/redis"},
	},
	"schedule": {
		{
			"a partition that forgot is told its jobs again", "schedule/remember.go",
			"if known[o.partition] > 0 {", "if true {", "TestAPartitionThatForgotIsToldAgain",
		},
		{
			"operations go on behind the numbers that partitions know", "schedule/remember.go",
			"o.partition == 0 && slices.Max(known) > last", "slices.Max(known) < last-1<<40", "TestAPartitionThatForgotIsToldAgain",
		},
		{"a partition that forgot is told all", defineLua, "if not (rev or ask.whole) then", "if false then", "TestAPartitionThatForgetsDuringAnOperation"},
		{"a job under way is found in its operation", "schedule/book.go", "if j := all[r.source.Job]; op != nil && (j == nil || j.Rev < r.Rev) {", "if false {", "TestARunOfAnOperationUnderWay"},
		{"a trigger fires its tasks with their own priority", "schedule/heap.go", "f.Class = ischedule.Own", "f.Class = ischedule.Normal", "TestRunsStartByThePriorityOfTheirTask"},
		{
			"operations wait for replicas", "internal/schedule/scheduler.go",
			", Confirm: lasting[script]}", "}", "TestReplicasConfirmOperationsAndFacts",
		},
		{"a paused trigger does not fire", "internal/schedule/rule.go", "Position: begin, Paused: j.Pause != nil}", "Position: begin}", "TestAPausedJobStartsNothing"},
	},
}
