package mutants

import (
	"strings"
	"testing"

	"github.com/runnel-go/runnel/internal/test/tier"
)

const (
	changesLua  = "internal/store/lua/commit_changes.lua"
	changesGo   = "internal/store/partition_changes.go"
	metaCacheGo = "internal/store/meta_cache.go"
	hopLua      = "internal/store/lua/hop.lua"
	quietLua    = "internal/store/lua/quiet.lua"
	courierGo   = "internal/store/courier.go"
	outboxGo    = "internal/store/partition_outbox.go"
	stagingGo   = "internal/worker/staging.go"
	rowsGo      = "internal/rows/rows.go"
	rowsTableGo = "internal/rows/table.go"
	rowsLoadGo  = "internal/rows/load.go"
	rowsEndsGo  = "internal/rows/ends.go"
	expireGo    = "expire.go"
	deathsGo    = "internal/worker/deaths.go"

	heldKill       = "TestACrashWhileACommitWaitsIsNotTheEventsDoing"
	changesNotDone = "TestChangesThatAreNotDone"
	changesOnFull  = "TestChangesOnAServerWhoseMemoryIsFull"
	changesNoRoom  = "TestChangesForAFullPartition"
	rowsOfCommits  = "TestRowsOfCommits"
	manyRows       = "TestManyRowsInOneCommit"
	outputsOf      = "TestOutputsOfCommits"
	parkedWithRows = "TestAParkedEventIsDoneWithItsRows"
	withPosition   = "TestChangesGoWithTheirPosition"
	setLast        = "TestRowsAreWhatWasSetLast"
)

// So is every rule of commits with rows and outputs.
func TestTableMutants(t *testing.T) {
	tier.Slow(t)
	for pkg, list := range tableMutants {
		t.Run(strings.ReplaceAll(pkg, "/", "_"), func(t *testing.T) { try(t, pkg, list) })
	}
}

// tableMutants are the rules of what is committed with a position, by the package whose tests notice that they are missing.
var tableMutants = map[string][]mutant{
	"internal/store": {
		{"pages of large rows are small", "internal/store/table.go", "max(int64(n)*bytesPerPage/max(bytes, 1), 1)", "max(int64(n)*bytesPerPage, 1)", "TestPagesOfLargeRowsAreSmall"},
		{"large records of a call are appended together", "internal/store/send_bare.go", `"MULTI"))`, `"PING"))`, "TestLargeRecordsStayInOrderWhileMemoryIsShort"},
		{"a replica is noticed before a transaction", "internal/store/send_bare.go", `"PEXPIRE", p.log, 1, "GT"`, `"EXISTS", p.log`, "TestAReplicaIsLeft"},
		{"what was appended without a transaction is known", "internal/store/send_bare.go", "if n == 1 || redisconn.IsReply(calls[1].Reply.Err()) {", "if n == 1 {", "TestLargeRecordsNeedNoTransactions"},
		{"a hop that breaks off passes nothing over", hopLua, "		redis.call('HSET', hops, ARGV[1], last)\n		return put\n", "		return put\n", "TestAHopToAnExhaustedTargetLosesNothing"},
		{"what comes again stays set aside", "internal/store/lua/tenure.lua", "or oldest and not position and id == oldest", "", "TestAsideSurvivesAPartOfTheRead"},
		{"a row that was removed while a page was read is none without an end", "internal/store/table.go", "!r.There })", "false })", "TestRowsThatEndWhileTheyAreRead"},
		{"changes are those of the tenure", commitLua, "if saved[1] ~= ARGV[1] then", "if false then", changesNotDone},
		{"changes that were stored are not stored again", commitLua, "if number <= done then return 'AGAIN' end", "", changesNotDone},
		{
			"changes behind forgotten ones are refused", commitLua,
			"if number > done + 1 then return 'BEHIND it knows ' .. done .. ' commits, not ' .. number - 1 end", "",
			changesNotDone,
		},
		{"a repetition is known before anything else is looked at", commitLua, "	if number <= done then return 'AGAIN' end\n", "	if prepare then local no = prepare(done) if no then return no end end\n	if number <= done then return 'AGAIN' end\n", changesNoRoom},
		{"that there is no group is noticed before the first write", changesLua, "	if group.err then return group end", "	", changesNotDone},
		{"obstacles are looked for", changesLua, "	local no = obstacle()\n	if no then return no end\n", "", "TestChangesBesideAWrongTypeAreNotDone"},
		{"the type of a hash of parked events is looked at", changesLua, "			call('HLEN', KEYS[k])\n", "", "TestChangesBesideAWrongTypeAreNotDone"},
		{"the type of rows is looked at", changesLua, "		call('HLEN', rows)\n", "", "TestChangesBesideAWrongTypeAreNotDone"},
		{"the type of times is looked at", changesLua, "		call('ZCARD', due)\n", "", "TestChangesBesideAWrongTypeAreNotDone"},
		{"rights are looked at", changesLua, "if not may(name, key, ...) then", "if false then", "TestChangesWithoutARightAreNotDone"},
		{"the right to store the position is looked at", changesLua, "check('HSET', own, 'a', 'b') or ", "", "TestChangesWithoutARightAreNotDone"},
		{"the right to change times is looked at", changesLua, "			or check('ZREM', due, 'a') or", "			or", "TestChangesWithoutARightAreNotDone"},
		{
			"memory is asked for before changes that grow", changesLua,
			"if argv[8] == '1' then call('HSET', own, 'commit', done) else call('HDEL', own, '') end", "call('HDEL', own, '')",
			changesOnFull,
		},
		{
			"changes that only delete ask for no memory", changesLua,
			"if argv[8] == '1' then call('HSET', own, 'commit', done) else call('HDEL', own, '') end", "call('HSET', own, 'commit', done)",
			changesOnFull,
		},
		{"outputs need memory", changesGo, "return len(c.Outputs) > 0", "return false", changesOnFull},
		{"rows need memory", changesGo, "			if r.There {\n				return true\n			}\n", "			_ = r\n", changesOnFull},
		{"a full partition refuses all that is to be appended", changesLua, "length + n > most", "length > most", changesNoRoom},
		{"the own stream has always room", metaCacheGo, "if to.Stream == own {", "if false {", changesNoRoom},
		{"nothing is committed for a partition that is no more", changesGo, "if err != nil {\n			return nil, nil, fmt.Errorf(\"outputs", "if false {\n			return nil, nil, fmt.Errorf(\"outputs", "TestChangesForAPartitionThatIsNoMore"},
		{"an empty partition takes more than its length", changesGo, "most > 0 && n > most {", "most > 0 && n < 0 {", changesNoRoom},
		{"a full partition is told by its number", changesLua, "return 'FULL ' .. i end", "return 'FULL 1' end", changesNoRoom},
		{"outputs are stored in their order", changesGo, "append(outputs[t], i), size", "append([]int{i}, outputs[t]...), size", outputsOf},
		{"all outputs of a partition are stored", changesLua, "			at = at + 1 + width\n		end\n	end\nend", "			at = at + 1 + width\n			if n > 400 then n = 0 return end\n		end\n	end\nend", outputsOf},
		{"stored outputs are counted", changesGo, "			o.Sent.Add(1)\n", "", outputsOf},
		{"rows are set", changesLua, "at = with('HSET', rows, at + 5, sets, 2)", "at = at + 5 + 2 * sets", rowsOfCommits},
		{"rows are deleted", changesLua, "at = with('HDEL', rows, at, dels, 1)", "at = at + dels", rowsOfCommits},
		{"times are set", changesLua, "at = with('ZADD', due, at, times, 2)", "at = at + 2 * times", rowsOfCommits},
		{"times of rows that last are removed", changesLua, "at = with('ZREM', due, at, lasting, 1)", "at = at + lasting", rowsOfCommits},
		{"a row whose time is the partition's ends", changesLua, "'-inf', ended, 'LIMIT'", "'-inf', '(' .. ended, 'LIMIT'", rowsOfCommits},
		{"rows end by the partition's time", changesLua, "'-inf', ended, 'LIMIT'", "'-inf', '+inf', 'LIMIT'", rowsOfCommits},
		{"no row ends without a time", changesLua, "local over = ended ~= '0' and call", "if ended == '0' then ended = '+inf' end\n		local over = call", rowsOfCommits},
		{"rows that have ended go with their times", changesLua, "			call('ZREM', due, unpack(over, from, to))\n", "", rowsOfCommits},
		{"more rows end with a commit than it adds", changesLua, "0, 128 + times)", "0, 128)", manyRows},
		{"rows end a few at a time", changesLua, "0, 128 + times)", "0, -1)", manyRows},
		{"no command has more arguments than fit on Lua's stack", changesLua, "		local to = math.min(stop, from + 4000)\n", "		local to = stop\n", manyRows},
		{"each table has its own keys", changesLua, "		key = key + 2\n", "", "TestRowsOfSeveralTables"},
		{"states of settled events are removed", changesLua, "		with('HDEL', KEYS[parked], start, settled, 1)\n", "", parkedWithRows},
		{"settled events are removed", changesLua, "		with('HDEL', KEYS[parked + 1], start, settled, 1)\n", "", parkedWithRows},
		{"what came is passed over", hopLua, "if before(last, ARGV[at]) then", "if true then", "TestOutputsOfAnOwnerThatIsGone"},
		{"the last that came is noted", hopLua, "redis.call('HSET', hops, ARGV[1], newest)", "", "TestOutputsForOtherSlotsComeOnce"},
		{"a target that has forgotten some is noticed", hopLua, "if ARGV[2] ~= '' and before(last, ARGV[2]) then return { last, 0 } end", "", "TestATargetThatHasForgotten"},
		{"a target is looked at before it is noted what came", hopLua, "redis.call('XLEN', log) -- of another type?", "", "TestHopsAreWhole"},
		{"a target takes no more than its length", hopLua, "if n >= room then", "if n > room then", "TestATargetThatIsFull"},
		{"the outbox is written first", changesLua, "local no = refusal(prepare) or box()\nif no then return no end\nwrite()\n", "local no = refusal(prepare)\nif no then return no end\nwrite()\nno = advance() or box()\nif no then return no end\n", "TestAnOutboxThatIsAhead"},
		{"outputs of an ownership have numbers of their own", changesLua, "string.format('%.0f', number + i)", "string.format('%.0f', i)", "TestOutputsForOtherSlotsComeOnce"},
		{"outputs whose reply was lost are counted", courierGo, "); tried { // also", "); false && tried { // also", "TestHopsThatGoMissing"},
		{"nothing is sent to a partition that is no more", metaCacheGo, "to.Partition >= meta.Partitions {", "false {", "TestATargetThatIsNoMore"},
		{"what has an unknown outcome is sent again", courierGo, "		r.tried = true\n		c.failed(", "		c.came(r, r.entries[r.sent-1].id)\n		c.failed(", "TestHopsThatGoMissing"},
		{"only what came is removed", courierGo, "entryid.Compare(first, done) < 0 {", "false {", "TestATargetThatIsFull"},
		{"what waits in memory has a bound", courierGo, "	if c.more && !c.Behind() {\n		count", "	if c.more {\n		count", "TestACourierKeepsALimitedNumber"},
		{"replicas have what is sent", outboxGo, "	if err = classify(err); err == nil {\n		err = weak\n	}\n", "	_, err = weak, classify(err)\n", "TestHopsWaitForReplicas"},
		{"replicas have what came", courierGo, "case weak != nil:", "case false:", "TestHopsWaitForReplicas"},
		{"rows that have ended are those of the tenure", quietLua, "if saved[1] ~= ARGV[1] then", "if false then", "TestRowsEndWithoutFurtherEvents"},
		{"a waiting event keeps rows", quietLua, "#redis.call('XRANGE', KEYS[1], '(' .. saved[2], '+', 'COUNT', 1) > 0 or ", "", "TestRowsEndWithoutFurtherEvents"},
		{"a parked event keeps rows", quietLua, " or redis.call('HLEN', KEYS[3]) > 0", "", "TestRowsEndWithoutFurtherEvents"},
	},
	".": {
		{"what is parked and comes again is parked no more", "internal/store/lua/reset.lua", "if before(to, id) then", "if before(id, to) then", "TestParkedEventsCountOnceBehindAReset"},
		{"what is parked and does not come again stays", "internal/store/lua/reset.lua", "> 0 or there and there[id] then", ">= 0 or there then", "TestParkedEventsCountOnceBehindAReset"},
		{"a goroutine of middleware that ends is no success", "consume.go", "	if c.inside { // where middleware called", "	if false { // where middleware called", "TestGoexitInAGoroutineOfMiddlewareIsAFailure"},
		{"a parked event behind a commit that waits has survived", stagingGo, "	if p.staging.stuck() { // behind", "	if false { // behind", "TestACrashIsNotTheDoingOfAParkedEventBehindACommitThatWaits"},
		{"who ends a second time at an event is followed with care", takeoverLua, "suspect == before_it and '2' or '1'", "suspect == before_it and '1' or '1'", "TestADeadlyEventBehindACommitThatWaits"},
		{"an event whose commit waits has survived", stagingGo, "		p.source.parked.survived(s.suspect, done, waits)\n", "		_, _ = done, waits\n", heldKill},
		{"a parked event whose commit waits has survived", deathsGo, "		_, _ = s.Write(*waits)", "		_ = s", heldKill},
		{"a suspect whose commit waits is none", deathsGo, "	if suspect != \"\" && entryid", "	if false && entryid", heldKill},
		{"outputs do not pass for those of a later epoch", "internal/worker/outbox.go", "if epoch >= o.p.epoch {", "if false {", "TestOutputsBehindThoseOfALaterEpoch"},
		{"what waits in the outbox has a bound", "internal/worker/outbox.go", " || o.asked.Load()-o.read.Load() >= store.MostWaiting", "", "TestAnOutboxThatIsNotRead"},
		{"numbers of outputs go on", "internal/worker/outbox.go", "	o.boxed += one.Boxes\n", "", "TestOutputsForOtherSlots"},
	},
	"runneltest": {
		{"rows end before an event that is not before them", expireGo, "entryid.Millis(c.rest[0].ID))", "entryid.Millis(c.rest[0].ID)-1)", "TestRowsEndInOrder"},
		{"rows end between two events of a loop", expireGo, "a != nil && a.rows.NextEnd() <= max(", "a != nil && a.rows.NextEnd() < min(0, ", "TestRowsEndInOrder"},
		{"rows end where no event comes", expireGo, "	by := max(r.Now(), r.QuietTo())\n", "	by := r.Now()\n", "TestRowsEndInOrder"},
		{"an end that an operator wants skipped is skipped", expireGo, `if skip := c.src.Rows.Skip; skip != ""`, `if skip := c.src.Rows.Skip; false`, "TestAQuarantineAtARowsEndIsReleased"},
		{"a quarantine names the end of a row", "internal/worker/quarantine.go", "q.Ending = end.Name()", "_ = end.Name()", "TestAQuarantineAtARowsEndIsReleased"},
		{"one end of a row is skipped, and no later one", "internal/rows/ends.go", "e.Key, e.At)", "e.Key, 0)", "TestAQuarantineAtARowsEndIsReleased"},
		{"a new owner goes on with the time of the one before", stagingGo, "	p.staging.rows.At(pos.Time)\n", "", "TestTimeDoesNotGoBackWithANewOwner"},
		{"an end without a return is none", expireGo, "	err = errUnfinished\n", "", "TestAnEndWithoutAReturnIsNone"},
		{"a split batch has one time", "atomic.go", "a.rows.Begin(last)", "a.rows.Begin(events[len(events)-1].ID)", "TestABatchThatIsSplitHasOneTime"},
		{"rows end before an event is begun", "internal/worker/ends.go", "if rows.NextEnd() > by {", "if true {", "TestDeathsAtAnEndAreNoEventsDoing"},
		{"rows stay for ends that wait", "internal/worker/expiry.go", "e.Called = append(e.Called, t.Config.Place)", "_ = t", "TestRowsStayForAnEndThatIsHeldUp"},
		{"no row ends once the ownership does", expireGo, "if !c.src.Live() { // there may be many", "if false {", "TestNoRowEndsBehindARelease"},
		{"no row ends within a batch", expireGo, "			return max(i, 1)\n", "			return n\n", "TestABatchEndsBeforeARow"},
		{"a row is gone when its end is told", expireGo, "			in.Delete(e.Key)\n			return c.within", "			defer in.Delete(e.Key)\n			return c.within", "TestAnEndChangesRows"},
		{"time is the end of a row", rowsEndsGo, "	p.now, p.inside = at, true\n", "	p.inside = true\n", "TestRowsEndInOrder"},
		{"what an end has changed and failed with is undone", expireGo, "c.atomic.end(nil, &err); err == nil {", "c.atomic.end(nil, new(error)); err == nil {", "TestEndsThatFail"},
		{"an end is tried so often", expireGo, "attempt >= c.retry.Max", "attempt > c.retry.Max", "TestEndsThatFail"},
		{"a row that is given up stays", expireGo, "{ in.Keep(e.Key); return nil }", "{ in.Delete(e.Key); return nil }", "TestEndsThatFail"},
		{"an ending that is ignored is over", expireGo, "		c.src.Ignored(c.ctx, 1, err)\n", "", "TestEndsThatFail"},
	},
	"internal/worker": {
		{"one acker numbers a commit at a time", stagingGo, "	if err != nil {\n		return\n	}\n	s.refusals", "	if s.sent = false; err != nil {\n		return\n	}\n	s.refusals", "TestTwoAckersDoNotNumberACommitTwice"},
		{"what was only read is forgotten", stagingGo, "		s.rows.Drop()\n", "", "TestIterationsThatOnlyReadLeaveNothing"},
		{"commits fit their target", stagingGo, "<= min(together, one.together)", "<= changesPerCommit", "TestACommitOfManyIterationsFitsItsTarget"},
		{"an ack does not come before its changes", stagingGo, "	if items, bytes, together := s.rows.Pending(); items > 0 {\n", "	ack()\n	ack = func() {}\n	if items, bytes, together := s.rows.Pending(); items > 0 {\n", "TestAcksComeWithTheirChanges"},
		{"no commit is made between an ack and its changes", stagingGo, "	ack()\n}", "	s.mu.Unlock()\n	ack()\n	s.mu.Lock()\n}", "TestAcksComeWithTheirChanges"},
		{"changes wait for their position", stagingGo, `len(s.queue) > 0 && (s.queue[0].upTo == "" || entryid.Compare(s.queue[0].upTo, one.Committed) <= 0)`, "len(s.queue) > 0", withPosition},
		{"a position waits for its changes", stagingGo, `return cmp.Or(s.queue[0].upTo, "0-0")`, `return cmp.Or("", s.queue[0].upTo[:0])`, withPosition},
		{"a commit has a bound", stagingGo, "one.bytes+bytes <= bytesPerCommit", "one.bytes+bytes > 0", withPosition},
		{"the acks before a parked event are committed first", stagingGo, "[]string{id}}, waits: waits}", "[]string{id}}, waits: waits, together: changesPerCommit}", "TestAParkedEventIsCommittedBehindWhatWasDoneBefore"},
		{"rows that end pass no entry", stagingGo, "cmp.Or(last, s.queue[n-1].upTo)", "last", "TestRowsThatEndAreCommittedInTheirTurn"},
		{"rows that end are committed without an entry", positionGo, "s.queue[0].upTo != \"\"):", "s.queue[0].together > 0):", "TestRowsThatEndAreCommittedInTheirTurn"},
		{"a commit is sent again as it is", positionGo, "case s != nil && s.flight != nil:", "case s != nil && s.flight != nil && s.closed:", "TestACommitIsRepeatedUnchanged"},
		{"one commit is under way", positionGo, "if s.held || s.closed || s.sent {", "if s.held || s.closed {", "TestACommitIsRepeatedUnchanged"},
		{"only a reply confirms rows", stagingGo, "	if err != nil {\n		return\n	}\n	s.refusals", "	if err != nil && s.closed {\n		return\n	}\n	s.refusals", "TestOnlyAReplyConfirmsRows"},
	},
	"internal/rows": {
		{"rows beyond the budget are not held", rowsTableGo, "t.kept, t.leaving = false, true, t.bytes, nil", "t.kept = false, true, t.bytes", "TestRowsBeyondTheBudgetAreNotHeld"},
		{"what was only looked up is tidied", rowsGo, "	p.seen = p.seen[:0]\n	p.mark++\n	for _, t := range p.Tables {\n		t.tidy(p.now)\n", "	p.seen = p.seen[:0]\n	p.mark++\n	for range p.Tables {\n", "TestLookingUpTakesNoMemory"},
		{"a late end holds no others", rowsTableGo, "return h[i].at < h[j].at", "return false", "TestALateEndHoldsNoOthers"},
		{"what the loader brings is older than what was seen", rowsLoadGo, "		if t.rows[stored.Key] == nil {\n", "		if r := t.rows[stored.Key]; r == nil || t.committed(r) {\n", "TestRowsAtRandom"},
		{"what a failed iteration has changed is restored", rowsGo, "		s.row.Row, s.row.changed = s.before, s.changed\n", "", setLast},
		{"what a failed iteration has seen is decoded anew", rowsGo, "s.row.value, s.row.known, s.row.unsealed = nil, false, false", "s.row.unsealed = false", setLast},
		{"a row that was set blindly and undone is not known", rowsGo, "if s.blind {", "if false {", setLast},
		{"not all is loaded if a row was forgotten", rowsLoadGo, "&& forgot == t.forgot", "&& forgot <= t.forgot", "TestAnUndoneRowIsLoadedAgain"},
		{"a deletion is kept until it is committed", rowsTableGo, "		if gone && !t.committed(r) {\n", "		if false && gone && !t.committed(r) {\n", "TestADeletionIsKeptUntilItIsCommitted"},
		{"only what is committed is dropped", rowsTableGo, "		if t.committed(r) {\n", "		if t.p != nil {\n", setLast},
		{"an end is among the first that are known", rowsEndsGo, "	if compareEnds(one, e.known) > 0 {\n", "	if compareEnds(one, e.known) > 0 && e.t == nil {\n", "TestEndsComeInOrder"},
		{"a row is there until its end was told", rowsTableGo, " || t.Config.Calls)", ")", "TestAnEndThatIsLateIsTold"},
		{"an end that comes earlier than it was is noted", rowsEndsGo, "held && at <= one.At {", "held && at != 0 {", "TestEndsComeInOrder"},
		{"ends that were shed are asked for", rowsEndsGo, "	e.known = e.heap[len(e.heap)-1]\n", "", "TestManyEnds"},
		{"an end goes with the row", rowsEndsGo, "r.There && (r.Until == 0 || r.Until > one.At)", "false", "TestEndsComeInOrder"},
		{"more ends than were told are asked for", rowsEndsGo, "		e.known = found[some-1]\n", "", "TestEndsComeInOrder"},
		{"a row whose end was not told stays in memory", rowsTableGo, " && !t.Config.Calls\n", "\n", "TestAnEndThatIsLateIsTold"},
		{"a time without a row is removed", rowsEndsGo, "case !r.There && r.taken > 0: // deleted since", "case !r.There:", "TestEndsOfBadRows"},
		{"the loader takes nothing that was changed back", rowsLoadGo, "if t.rows[stored.Key] == nil {", "if t.rows[stored.Key] == nil || t.p != nil {", setLast},
	},
}
