package mutants

const (
	commitLua     = "internal/store/lua/commit.lua"
	tenureLua     = "internal/store/lua/tenure.lua"
	presentLua    = "internal/store/lua/present.lua"
	positionGo    = "internal/worker/course_position.go"
	prefetchAcks  = "internal/prefetch/acks.go"
	mayHaveBegun  = "TestTakeoverKnowsWhatAnOwnerByPositionMayHaveBegun"
	passesNothing = "TestACommitPassesNothingThatTheServerHasAnew"
	notDone       = "TestAPositionPassesNothingThatIsNotDone"
)

// positionMutants are the rules of reads by position, by the package whose tests notice that they are missing.
var positionMutants = map[string][]mutant{
	"internal/worker": {
		{
			"what another reader reads on is looked at", "internal/worker/fetcher_assign.go",
			"		p.connections = anotherReader\n", "",
			"TestWhatIsHandedOverIsLookedAt",
		},
		{
			"the context of a lost partition ends before its function is refused", "internal/worker/partition.go",
			"p.cancel(ErrLost) // before the others that lose it at the same time go on: see Gate.Holds\n\tif p.life.over.Swap(true) {",
			"if p.life.over.Swap(true) {\n\t\treturn false\n\t}\n\tp.cancel(ErrLost)\n\tif false {", "TestALeaseIsOverForTheFunctionFirst",
		},
		{
			"a round of commits does not hold the server", positionGo,
			"return max(commitsAtOnce, (n+mostTrips-1)/mostTrips)", "return n",
			"TestARoundOfCommitsDoesNotHoldTheServer",
		},
		{
			"no commit follows one of unknown outcome at once", "internal/worker/acker.go",
			"len(work) > 0 && failed == nil;", "len(work) > 0;",
			"TestARoundOfCommitsDoesNotHoldTheServer",
		},
	},
	"internal/store": {
		{
			"an owner that did not release is remembered by the next one", takeoverLua,
			"if unclean then\n\tredis.call", "if false then\n\tredis.call", "TestTheOwnerBeforeIsWaitedFor",
		},
		{
			"the owner before is waited for while its lease may hold", "internal/store/rules_notpaused.go",
			"now.UnixMilli() < ms(before[2])+ms(before[1])", "now.UnixMilli() < ms(before[2])", "TestTheOwnerBeforeIsWaitedFor",
		},
		{
			"a commit compares the tenure", commitLua,
			"if saved[1] ~= ARGV[1] then", "if false then",
			"TestACommitMovesThePosition",
		},
		{
			"a commit that was done before changes nothing", commitLua,
			"if number <= done then return 'AGAIN' end", "",
			"TestACommitMovesThePosition",
		},
		{
			"a commit behind a forgotten one is refused", commitLua,
			"if number > done + 1 then return 'BEHIND it knows ' .. done .. ' commits, not ' .. number - 1 end", "",
			"TestACommitMovesThePosition",
		},
		{
			"a commit passes nothing that it was not read of", commitLua,
			"	if other then return 'BEHIND it has ' .. other[1] .. ', and not ' .. ARGV[4] end\n", "",
			passesNothing,
		},
		{
			"a commit stays within what the partition ever had", presentLua,
			"if before(last, id) then return 'it ends with '", "if false then return 'it ends with '",
			"TestACommitStaysWithinWhatThePartitionEverHad",
		},
		{
			"a commit passes nothing that was forgotten, though others came behind it", presentLua,
			"local fewer = removed and read and", "local fewer = false and",
			"TestACommitKnowsWhatWasDroppedFromWhatWasForgotten",
		},
		{
			"nothing was dropped while an entry before it is left", presentLua,
			"or trimmed_past(log, own, floor, left)) then return nil end", "or true) then return nil end",
			"TestNothingIsReadOnBehindWhatWasForgotten",
		},
		{
			"a number that cannot be tells nothing", presentLua,
			" and removed >= (at or 0)", "",
			"TestNothingIsReadOnBehindWhatWasForgotten",
		},
		{
			"a commit that passes nothing asks for nothing", presentLua,
			"if floor == id or not", "if not",
			"TestACommitThatPassesNothing",
		},
		{
			"an entry that is deleted while it is processed holds nothing up", presentLua,
			"if not deleted or before(deleted, id) then", "if true then",
			"TestACommitPassesAFullServer",
		},
		{
			"an owner does not read on behind what was forgotten", "internal/store/lua/continues.lua",
			"local floor, upto = saved[2] or '0-0', tonumber(read)", "local floor, upto = saved[2] or '0-0', nil",
			"TestNothingIsReadOnBehindWhatWasForgotten",
		},
		{
			"an entry that is dropped while it is processed holds nothing up", commitLua,
			"	if other then return 'BEHIND it has ' .. other[1]", "	if true then return 'BEHIND it has ' .. (other or { '' })[1]",
			passesNothing,
		},
		{
			"each tenure counts its commits by itself", takeoverLua,
			"'clean', 'begun', 'commit', 'reach', 'seen')", "'clean', 'begun', 'reach', 'seen')",
			"TestACommitMovesThePosition",
		},
		{
			"a refresh leaves the position to commits", refreshLua,
			"	elseif known[3] then\n", "	end\n	if known[3] then\n",
			"TestACommitMovesThePosition",
		},
		{
			"a refresh stores when the owner was there", refreshLua,
			"		redis.call('HSET', own, 'seen', now)\n", "",
			"TestARefreshStoresThatTheOwnerWasThere",
		},
		{
			"a takeover stores how much its owner may begin", takeoverLua,
			"if ARGV[7] ~= '' then", "if false then",
			mayHaveBegun,
		},
		{
			"a refresh stores that its owner may begin more", refreshLua,
			"if (tonumber(reach) or 0) > tonumber(may) then", "if false then",
			mayHaveBegun,
		},
		{
			"what a dead owner may have begun is given", takeoverLua,
			"first, given = begun(", "first = begun(",
			mayHaveBegun,
		},
		{
			"what came after the lock had ended has not begun", positionLua,
			"if ms > till and ms <= now then return first, last end", "",
			mayHaveBegun,
		},
		{
			"what was set aside is no suspect", positionLua,
			"if not first and not moved[after] then first = after end", "first = first or after",
			mayHaveBegun,
		},
		{
			"what was taken out by position is set aside", tenureLua,
			"	if position then\n		oldest = redis.call('HGET', own, 'floor')", "	if false then\n		oldest = redis.call('HGET', own, 'floor')",
			mayHaveBegun,
		},
		{
			"what was set aside is not taken out again", tenureLua,
			"return before(at_begin.floor, id) and not at_begin.aside[id]", "return before(at_begin.floor, id)",
			mayHaveBegun,
		},
		{
			"what the position has passed is not taken out", tenureLua,
			"return before(at_begin.floor, id) and not", "return not",
			"TestALateParkParksNothingThatThePositionHasPassed",
		},
		{
			"an owner reads on where what it has read is", "internal/store/lua/continues.lua",
			"out[i] = fine and so and 1 or 0", "out[i] = 1",
			"TestContinue",
		},
		{
			"who looks for an entry leaves nothing pending", presentLua,
			"	redis.call('XACK', log, group, id) -- it is pending now\n", "",
			"TestContinue",
		},
		{
			"what was lost behind the position counts as read", refreshLua,
			"	if not still then return lost, 2 end\n	passed(log, own, info, gap)\n", "	if not still then return lost, 2 end\n",
			"TestLostIsTrue",
		},
		{
			"a refresh does not count what a read may bring of a partition that was trimmed", refreshLua,
			"	if not still then return lost, 2 end\n", "",
			"TestLostIsTrue",
		},
		{
			"a refresh does not count what a read may bring", refreshLua,
			"if gap > 0 and by_position and not still then", "if false then",
			"TestLossesAreCountedByPosition",
		},
		{
			"what was lost behind the last entry counts as read", refreshLua,
			"if info['last-delivered-id'] ~= at then passed(", "if false then passed(",
			"TestLostIsTrue",
		},
		{
			"what was set aside is not lost", "internal/store/lua/position.lua",
			"return redis.REDIS_VERSION and n or 0", "return 0",
			"TestWhatIsParkedIsNotLost",
		},
		{
			"what is parked comes again only to be passed", "internal/store/lua/reset.lua",
			"if #behind > 0 then redis.call('HSET'", "if false then redis.call('HSET'",
			"TestTakeoverKnowsWhatWasMovedAside",
		},
		{
			"what comes again is not revived", "internal/store/lua/revive.lua",
			"if (own[1] or own[2] == 'reset') and", "if false and",
			"TestWhatComesAgainIsNotRevived",
		},
		{
			"what is parked comes again where the group is gone", takeoverLua,
			"if found == 'checkpoint' then\n	local known", "if false then\n	local known",
			"TestTakeoverKnowsWhatWasMovedAside",
		},
		{
			"what lies up to the position is not lost", takeoverLua,
			"(entries_between(log, '0-0', floor) or 0)", "0",
			"TestATakeoverCountsWhatWasLostBeforeThePosition",
		},
		{
			"a takeover by group counts what is lost behind what is acked", takeoverLua,
			"local changes = saved.reach and ARGV[7] == ''", "local changes = false",
			"TestATakeoverCountsWhatWasLostBeforeThePosition",
		},
		{
			"an owner that does not know what it has read counts nothing", "internal/store/lua/room.lua",
			"		and tonumber(saved[6] or '') -- else it cannot tell: what it has read and not committed counts as well\n", "",
			"TestDroppedEventsAreCountedWhereNumbersAreUnknown",
		},
		{
			"by position what is lost is counted by what was read", refreshLua,
			"if added and added == lost + (read or -1) then return lost, 1, read end", "if info['last-delivered-id'] ~= at then return lost, 0, -1 end",
			"TestLossesAreCountedByPosition",
		},
	},
	".": {
		{
			"a group that was set back tells more than the floor", "internal/worker/course_group_forgotten.go",
			"case given != \"\" && entryid.Compare(given, last) < 0:", "case false:",
			"TestAParkIsForgotten",
		},
		{
			"what is parked is compared behind a new connection", "internal/worker/fetcher.go",
			"before != 0 && before != made &&", "before == -1 &&",
			"TestTheEndOfAParkedEventIsForgotten",
		},
		{
			"an ID ahead of the clock does not tell when it came", positionLua,
			"if ms > till and ms <= now then", "if ms > till then",
			"TestADeadlyEventWhoseIDIsAheadOfTheClock",
		},
	},
	"internal/redisconn": {
		{
			"a slot that goes to another node is read anew", "internal/redisconn/reader.go",
			"		r.made.Add(1)\n", "",
			"TestConnectionsTellOfAnotherServer",
		},
	},
	"internal/prefetch": {
		{
			"a position passes nothing that is not done", prefetchAcks,
			"if !a.byPosition || all == 0 {", "if all >= 0 {",
			notDone,
		},
		{
			"a commit that failed is repeated unchanged", prefetchAcks,
			"	if a.byPosition {\n		a.again = len(a.flight) > 0\n		return\n	}\n", "",
			notDone,
		},
		{
			"the position has yet to pass what was parked", prefetchAcks,
			"			a.done(ids)\n", "			a.strike(ids)\n",
			notDone,
		},
		{
			"what does not fit is read again", "internal/prefetch/buffer.go",
			"b.behind = !b.cfg.ByPosition", "b.behind = true",
			"TestByPositionWhatDoesNotFitIsReadAgain",
		},
	},
	"internal/test/conformance": {
		{
			"an owner by position looks around after a new connection", positionGo,
			"if len(doubted) == 0 {", "if len(doubted) >= 0 {",
			"TestAnIDBelowThePositionComesFirst",
		},
		{
			"nothing is taken that came over a connection that was not looked over", positionGo,
			"case r.conn.Connections() == made:", "case made > 0:",
			"TestAnIDBelowThePositionComesFirst",
		},
	},
}
