package mutants

const (
	stageTakeLua   = "internal/stage/lua/take.lua"
	stageCommitLua = "internal/stage/lua/commit.lua"
	stageSaveLua   = "internal/stage/lua/save.lua"
	fenceLua       = "internal/store/lua/fence.lua"
	wakeLua        = "internal/store/lua/wake.lua"

	scriptsOfStages = "TestModel/standalone/embedded"
)

// stageMutants are programs without one rule of sets of entities, by the package whose tests notice.
var stageMutants = map[string][]mutant{
	"internal/stage": {
		{
			"owners of sets are fenced", fenceLua,
			"if redis.call('HGET', own, 'tenure') == value then return nil end", "do return nil end", scriptsOfStages,
		},
		{
			"of two times of a visit the earlier one wins", stageCommitLua,
			"redis.call('ZADD', key, 'LT', moment(time), id)", "redis.call('ZADD', key, moment(time), id)", scriptsOfStages,
		},
		{
			"a commit compares versions", stageCommitLua,
			"elseif version ~= wanted then", "elseif false then", scriptsOfStages,
		},
		{
			"after a conflict the visit runs on", stageCommitLua,
			"if outcome == 'ok' then\n\t\tfor", "if outcome ~= 'gone' then\n\t\tfor", scriptsOfStages,
		},
		{
			"only what runs can end", stageCommitLua,
			"if not mark or mark:match('%S+$') ~= ARGV[i + 5] then", "if false then", scriptsOfStages,
		},
		{
			"a late commit does not end a later run", stageCommitLua,
			"if not mark or mark:match('%S+$') ~= ARGV[i + 5] then", "if not mark then", scriptsOfStages,
		},
		{
			"what runs is not taken", stageTakeLua,
			"if marks and marks[i] then", "if marks == 1 then", scriptsOfStages,
		},
		{
			"owners sleep only if nothing was taken", stageTakeLua,
			"if #out == 6 and more == '' then", "if more == '' then", scriptsOfStages,
		},
		{
			"owners sleep only if nothing is due", stageTakeLua,
			"if #out == 6 and more == '' then", "if #out == 6 then", scriptsOfStages,
		},
		{
			"what runs is not begun once more", stageCommitLua,
			"if redis.call('HEXISTS', runs, field) == 0 then", "if redis.call('HEXISTS', runs, field) < 2 then", scriptsOfStages,
		},
		{
			"a save touches", stageSaveLua,
			"redis.call('ZADD', KEYS[3], 'LT', unpack(touched))", "", scriptsOfStages,
		},
		{
			"a save wakes", stageSaveLua,
			"wake(KEYS[5], KEYS[4], touched[1])", "", scriptsOfStages,
		},
		{
			"who is awake is not woken", wakeLua,
			"if not sleeps or tonumber(at) >= tonumber(sleeps) then return 0 end", "if not sleeps then return 0 end", scriptsOfStages,
		},
	},
	"stage": {
		{
			"a crash is charged", "stage/recover.go",
			"f.Crashes = crashes", "f.Attempts, f.Crashes = f.Attempts-1, crashes", "TestKilledWorkersAreCharged",
		},
		{
			"only a crash alone is deadly", "stage/recover.go",
			"f.Dead = f.Attempts >= retry.Max && v.Alone", "f.Dead = f.Attempts >= retry.Max && crashes > lonely", "TestOnlyACrashAloneIsDeadly",
		},
		{
			"a visit says that it runs alone", "stage/chain.go",
			"What: istage.Alone, Due", "What: istage.Waits, Due", "TestKilledWorkersAreCharged",
		},
		{
			"what ran under the owner before is found", "stage/recover.go",
			"slices.Chunk(runs, takenAtOnce)", "slices.Chunk(runs[:0], takenAtOnce)", "TestKilledWorkersAreCharged",
		},
		{
			"all stages are asked at a touch", "stage/pass.go",
			"wanted := t.wanted(value, t.now.version, \"\")", "wanted := t.wanted(value, t.now.version, t.o.set.stages[1].name)", "TestStagesRunUntilNoneWants",
		},
		{
			"all stages are asked after a change", "stage/pass.go",
			"wanted = t.wanted(stored, 0, but)", "_ = t.wanted(stored, 0, but)", "TestStagesRunUntilNoneWants",
		},
		{
			"failed visits are left alone", "stage/pass.go",
			"failed && !f.Dead ||", "", "TestFailedVisitsWaitAndDie",
		},
		{
			"what waits in a chain is not put again", "stage/pass.go",
			"|| has[s.name] ||", "|| has[s.name+\"\\x00\"] ||", "TestAChangeDoesNotShortenTheWaitOfWhatFailsNext",
		},
		{
			"dead visits are left alone at their version", "stage/pass.go",
			"|| failed && version != 0 && f.Version >= version", "", "TestFailedVisitsWaitAndDie",
		},
		{
			"stages that undo each other are slowed down", "stage/pass.go",
			"return n > passesPerMinute &&", "return n < 0 &&", "TestStagesThatUndoEachOtherAreSlowedDown",
		},
		{
			"what was put while it ran is taken afterwards", "stage/owner.go",
			"o.ends.Add(1); o.passed.Swap(false) || waits", "o.ends.Add(1); waits", "TestEarliestVisitWins",
		},
		{
			"what waits behind what a take has begun is taken", "stage/owner.go",
			"s.What == istage.Begins && ended.Outcome == istage.OK", "false", "TestVisitBehindOneThatATakeBegan",
		},
		{
			"what a worker has died of is not called early", "stage/call.go",
			"t.failures[istage.Touch].Crashes > 0 ||", "", "TestAnEarlyCrashIsOfTheTouchOnce",
		},
		{
			"what is put while a function is called early waits on", "stage/pass.go",
			"wanted[i].Text += \" \" + t.v.Puts", "wanted[i].Text += \"\"", "TestVisitsPutDuringAnEarlyCallAreKept",
		},
		{
			"a stage whose when panics is not called early", "stage/call.go",
			"!wants || err != nil", "false && (!wants || err != nil)", "TestAStageWhoseWhenPanicsIsNotCalledEarly",
		},
		{
			"a lost beginning is looked for at once", "stage/chain.go",
			"reply was lost\n\t\t\tt.o.own.Wake()", "reply was lost", "TestALostBeginningIsFoundAtOnce",
		},
		{
			"a take that was sent since tells an unsure chain", "stage/chain.go",
			"if c.unsure > 0 && v.Number > c.unsure {", "if false {", "TestALostBeginningIsFoundAtOnce",
		},
		{
			"only a lone entity's function is called early", "stage/call.go",
			"len(c.o.chains) == 1", "true", "TestALoneFunctionIsCalledEarly",
		},
		{
			"a chain looks at the newest of its takes", "stage/chain.go",
			"} else if v.Entity.Version > c.now.version {", "} else if c.now.version == 0 {", "TestATouchLooksAtTheNewestValue",
		},
		{
			"visits that did not begin are given back", "stage/chain.go",
			"t.commit(waitAgain(&t.v.Visit))", "_ = t", "TestReleasedVisitsAreNotCharged",
		},
		{
			"owners look once per lease", "stage/take.go",
			"if t.Next < 0 {\n\t\t\t\treturn o.own.Expiry(), nil", "if t.Next < 0 {\n\t\t\t\treturn 100 * o.own.Expiry(), nil", "TestAForgottenSleepEndsWithinALease",
		},
	},
	"internal/worker": {
		{
			"a call begins only while the lease holds", "internal/worker/ownership.go",
			"if !o.Live() {", "if false {", "TestOwnershipKnowsItsFenceAndClock",
		},
		{
			"a part that is paused begins nothing", "internal/worker/pausegate.go",
			"if c.closed(one.gate, processor) {", "if false {", "TestGatesCloseByRulesAndCountWhatRuns",
		},
		{
			"what runs of a paused part is waited for", "internal/worker/heartbeat.go",
			"calm = calm && !heldBack &&", "calm = calm && (heldBack || true) &&", "TestGatesCloseByRulesAndCountWhatRuns",
		},
	},
}
