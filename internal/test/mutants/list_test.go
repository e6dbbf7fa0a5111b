package mutants

const (
	preludeLua  = "internal/store/lua/prelude.lua"
	takeoverLua = "internal/store/lua/takeover.lua"
	positionLua = "internal/store/lua/position.lua"
	refreshLua  = "internal/store/lua/refresh.lua"
	unlockLua   = "internal/store/lua/unlock.lua"
	swapLua     = "internal/store/lua/swap.lua"
	aliveLua    = "internal/store/lua/alive.lua"
	dueLua      = "internal/delayqueue/lua/lib.lua"
)

var mutants = []mutant{
	{
		"takeover checks the exact lock value", takeoverLua,
		"if redis.call('GET', KEYS[2]) ~= ARGV[3] then", "if false then",
		"TestTakeoverDeliveredLate/next_ownership",
	},
	{
		"takeover changes nothing when repeated in its tenure", takeoverLua,
		"if saved.tenure == ARGV[3] then", "if false then",
		"TestTakeoverDeliveredLate/same_ownership",
	},
	{
		"the groups of old owners are destroyed", takeoverLua,
		"if g['name'] ~= own then redis.call('XGROUP', 'DESTROY', log, g['name']) end", "",
		"TestOldOwnerIsFenced",
	},
	{
		"the floor is before the oldest pending entry", positionLua,
		"if group['pending'] == 0 and redis.REDIS_VERSION then return last", "if true then return last",
		"TestFloor/one_owner,_two_of_three_pending",
	},
	{
		"the lowest of several floors counts", takeoverLua,
		"if not floor or before(f, floor) then", "if not floor or before(floor, f) then",
		"TestFloor/two_owners,_the_second_is_behind",
	},
	{
		"IDs are compared as text", preludeLua,
		"dash == b:find('-', 1, true) then return a < b end",
		"dash == b:find('-', 1, true) then return tonumber(a:sub(dash + 1)) < tonumber(b:sub(dash + 1)) end",
		"TestFloor/two_owners_apart_by_less_than_a_double_tells",
	},
	{
		"longer numbers are larger", preludeLua,
		"if #am ~= #bm then return #am < #bm end", "",
		"TestFloor/two_owners,_one_more_digit",
	},
	{
		"our own group of an earlier tenure is made anew", takeoverLua,
		"if mine then redis.call('XGROUP', 'DESTROY', log, own) end", "if mine then return answer() end",
		"TestOwnGroupAgain",
	},
	{
		"the epoch rises", takeoverLua,
		"local epoch = math.max(", "local epoch = tonumber(saved.epoch or '') or math.max(",
		"TestOldOwnerIsFenced",
	},
	{
		"group names are plain text", preludeLua,
		"return #name == #prefix + id_length and name:sub(1, #prefix) == prefix and not name:find('@', #prefix + 1, true)", "return name:find('^' .. prefix) ~= nil",
		"TestNames",
	},
	{
		"a checkpoint does not outlive its partition", takeoverLua,
		"local same = not before(facts.last, saved.floor)", "local same = true",
		"TestPartitionReplaced/deleted,_more_of_lower_IDs",
	},
	{
		"a checkpoint does not outlive its partition, seen by the number of entries", takeoverLua,
		"if same and at and facts.added and facts.added < at then same = false end", "",
		"TestPartitionReplaced/deleted,_lower_IDs,_then_higher_ones",
	},
	{
		"a release compares the tenure", unlockLua,
		"if redis.call('GET', KEYS[1]) ~= ARGV[1] then", "if false then",
		"TestReleaseDeliveredLate",
	},
	{
		"each try bounds the life of a lock", "internal/store/partition_takeover.go",
		"errors.Is(err, ErrHeld) && foreign > 0", "errors.Is(err, ErrHeld) && foreign < 0",
		"TestDeadOwnersLock",
	},
	{
		"each look bounds the life of a heartbeat", aliveLua,
		"		redis.call('PEXPIRE', beat, ARGV[1])\n", "",
		"TestDeadMembersHeartbeat",
	},
	{
		"a release waits for the read", "internal/worker/fetcher.go",
		"removed := done == nil || r.outlast(p, done)", "removed := done == nil || true",
		"TestReplyOfEarlierTenure",
	},
	{
		"readers that cannot connect are done without", "internal/worker/fetcher.go",
		"			r.f.width.failed()\n", "",
		"TestABacklogIsReadOverTheConnectionsThatThereAre",
	},
	{
		"a read of unknown outcome is ended before anything else is read", "internal/worker/course_group.go",
		"err := within(ctx, r.conn.Kill)", "err := error(nil)",
		"TestReadDeliveredLate",
	},
	{
		"our history is read before anything new", "internal/worker/course_group.go",
		"		p.buffer.SetBehind(true)", "		p.buffer.SetBehind(false)",
		"TestBrokenRequests/read_1_close_after",
	},
	{
		"reads are not repeated by the client", "internal/redisconn/readconn.go",
		"o := c.options(-1)", "o := c.options(3)",
		"TestBrokenRequests/read_1_close_after",
	},
	{
		"sends are not repeated by the client", "internal/redisconn/conn.go",
		"c.NoRetry = c.hooked(c.options(-1), redactHook{})", "c.NoRetry = c.hooked(c.options(3), redactHook{})",
		"TestBrokenSends/1_1_close_after",
	},
	{
		"a short count of acks is a question", "internal/store/partition_ack.go",
		`errs[at] = acks[at].Place.wrap("ack", classify(calls[i].Reply.Err()))`, `errs[at] = acks[at].Place.wrap("ack", fmt.Errorf("%w %v", ErrFenced, calls[i]))`,
		"TestBrokenRequests/ack_1_close_after",
	},
	{
		"acks of unknown outcome are sent again", "internal/worker/acker.go",
		"	if err != nil {\n		p.buffer.AcksFailed()\n", "	if false {\n		p.buffer.AcksFailed()\n",
		"TestBrokenRequests/ack_1_close_before",
	},
	{
		"an entry without data is passed over", "internal/prefetch/buffer.go",
		"		b.skipLost()\n", "		_ = b.skipLost\n",
		"TestEntryGone",
	},
	{
		"an entry without data is reported", "internal/prefetch/buffer.go",
		"		b.cfg.Lost(id)\n", "",
		"TestEntryGone",
	},
	{
		"acks are confirmed before the lock is released", "internal/worker/releaser.go",
		"case quiet && p.flush():", "case quiet:",
		"TestAcksBeforeRelease",
	},
	{
		"after its tenure no ack is sent", "internal/worker/acker.go",
		"		if p.life.isLost() {\n			continue", "		if false {\n			continue",
		"TestAckOfEarlierTenure",
	},
	{
		"a lost group ends only its partition", "internal/worker/releaser.go",
		"found = r.judge(p, states[n]) || found", "found = r.judge(p, min(states[n], store.GroupGone)) || found",
		"TestOneGroupOfManyDestroyed",
	},
	{
		"without a group the stored floor counts", takeoverLua,
		"if not floor and saved.floor then -- destroyed", "if false then -- destroyed",
		"TestGroupDestroyedInHandover/before_the_takeover",
	},
	{
		"a refresh stores the floor", refreshLua,
		"redis.call('HSET', own, 'floor', floor, 'read', read)", "",
		"TestGroupDestroyedInHandover/before_the_takeover",
	},
	{
		"a group that is gone is taken over again", "internal/worker/releaser.go",
		"			r.m.coord.Lost(p.keys.Number)\n", "",
		"TestGroupDestroyedInHandover/after_the_takeover",
	},
	{
		"who is absent from the membership leaves and joins again", "rebalance/member.go",
		"	if !ok {\n		m.err, m.phase = ErrAbsent, ending", "	if !ok && m.err == nil {\n		return\n	}\n	if !ok {\n		m.err, m.phase = ErrAbsent, ending",
		"TestHeartbeatLost",
	},
	{
		"the stored membership is the truth whatever its number", "rebalance/member.go",
		"	m.group = g\n", "	if g.Generation < m.group.Generation {\n		return\n	}\n	m.group = g\n",
		"TestOlderGenerationIsFollowed",
	},
	{
		"a change compares the whole old value", swapLua,
		"if stored ~= ARGV[1] and stored ~= ARGV[2] then return 0 end", "",
		"TestChangesDoNotOverwrite",
	},
	{
		"every heartbeat reads the membership", "internal/worker/heartbeat.go",
		"		h.m.coord.Observe(refreshed.Membership)\n", "		_ = refreshed.Membership\n",
		"TestHeartbeatLost",
	},
	{
		"the lease counts from before the request", "internal/worker/heartbeat.go",
		"p.lease.end.Store(leaseDeadline(sent, h.m.p.Lease))", "p.lease.end.Store(leaseDeadline(max(sent, monotime.Now()), h.m.p.Lease))",
		"TestLeaseEndsBeforeTheLock",
	},
	{
		"the lease is looked at before each delivery", "internal/worker/lease.go",
		"return now < l.end.Load()", "return true || now < l.end.Load()",
		"TestStoppedOwnerBeginsNothing",
	},
	{
		"the function is told when the lease ends", "internal/worker/member.go",
		"	serving.Go(func() { m.leases.run(services) })\n", "",
		"TestContextEndsWithTheLease",
	},
	{
		"a refresh never takes a lost lock again", refreshLua,
		"if held ~= value then return '0 0 -\\n' end", "if not held then redis.call('SET', lock, value) elseif held ~= value then return '0 0 -\\n' end",
		"TestLostLockIsNotTakenAgain",
	},
	{
		"a surprise ends the executor ID", "internal/worker/releaser.go",
		"	r.m.surprise(fmt.Errorf(\"partition %d: %w\", p.keys.Number, err))\n", "",
		"TestLostLockIsNotTakenAgain",
	},
	{
		"a draining partition is refreshed", "internal/worker/ownerships.go",
		"if !p.life.isLost() {", "if p.source.Live() {",
		"TestSlowReleaseKeepsItsLease",
	},
	{
		"what a script moves out of a partition is not missed", "internal/worker/course_group_forgotten.go",
		" && !p.source.parked.moving.Load()", "",
		"TestALateParkIsNoLoss",
	},
	{
		"acks that a failover forgot are sent again", "internal/worker/course_group_forgotten.go",
		"c.ackForgotten(ctx, p, r), ", "",
		"TestReplicaBehindByAcks",
	},
	{
		"what Redis forgot that it delivered is processed under another epoch", "internal/worker/partition.go",
		"entryid.Compare(first, p.buffer.Last()) <= 0 {", "entryid.Compare(first, p.buffer.Last()) <= 0 && false {",
		"TestReplicaBehindByDeliveries",
	},
	{
		"what is pending is not acked unless it was", "internal/worker/course_group_forgotten.go",
		"if !p.buffer.HasAcked(ids) {", "if false {",
		"TestAnIDBelowThePosition/late",
	},
	{
		"a tenure keeps its number until its outcome is known", "internal/worker/claims.go",
		"		c.open[partition] = t\n", "",
		"TestBrokenRequests/lock_1_close_after",
	},
	{
		"nothing is due before its time", dueLua,
		"'-inf', time_text(now), 'WITHSCORES'", "'-inf', '+inf', 'WITHSCORES'",
		"TestManyMovers",
	},
	{
		"IDs of delayed events go on where Redis has forgotten the last", dueLua,
		"if not id and version < due_micros(q) then", "if false then",
		"TestTheIDOfADelayedEventIsGivenOnce",
	},
	{
		"a refresh finds what nobody was told", "internal/worker/heartbeat.go",
		"		h.m.w.forwarder.sawDue(p, renewed[n].Due)\n", "",
		"TestLostHintOfADelay",
	},
	{
		"a new owner reads the rules before its first event", "internal/worker/partition.go",
		"	p.held.Store(true) // until", "	// until",
		"TestRulesHoldWhileTheyCannotBeRead",
	},
	{
		"what was parked and is pending again is not acked", "internal/worker/course_group_forgotten.go",
		"if !p.buffer.HasAcked(ids) {", "if false {",
		"TestParkedEventForgottenByRedis",
	},
	{
		"an attempt counts before it is made", "internal/retryqueue/queue.go",
		"	s.Attempts++\n", "",
		"TestBrokenRetrySteps/park_1_close_before",
	},
}
