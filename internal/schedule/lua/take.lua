-- Takes runs that are ready, by priority and then in the order in which they became so. Before that, runs whose runner is gone
-- are queued again, at their place; those that lost too many runners have crashed.
--
-- Asks    fence of the owner; most at all; lowest: most of the lowest priority; runner; life of it in ns from now; crashes that a run
--         does not survive; sleep if there is nothing to do; unknown: look for runs of runners that are not known at all
-- Returns next: ns until there is more to do of what waits for a time, -1: nothing; first: the priority of the first run that is left, -1: none;
--         how many are recovered, which wait again, and crashed; of each run: task, t, generation, attempt, failed attempts, priority, rev of
--         the definition
-- Errors  FENCED
even_if_full(OWN) -- what is taken takes about what it leaves
local now, lowest = time_now(), ask.lowest
local LOWEST, PER_CALL = 3, 128
if ask.sleep then call('HSET', OWN, 'sleeps', '0') end -- until the end: nothing wakes it meanwhile
if ask.most > 0 then call('ZADD', RUNNERS, now + ms(ask.life), ask.runner) end

local again, crashed, gone = 0, 0, {}
for _, r in ipairs(call('ZRANGEBYSCORE', RUNNERS, '-inf', now)) do gone[r] = true end
for _, cell in ipairs((ask.unknown or next(gone)) and call('ZRANGE', RUNS, 0, -1) or {}) do
	if again + crashed == PER_CALL then break end
	local g, task, t = load_from(RUNS, cell)
	if g and (gone[g.r] or ask.unknown and not call('ZSCORE', RUNNERS, g.r)) then
		g.k, g.r = g.k + 1, nil
		if g.k < ask.crashes then
			again = again + 1
			make_ready(task, t, g)
			save(task, t, g)
		else
			g.x, g.u, crashed = 'its worker was lost ' .. g.k .. ' times', now, crashed + 1
			conclude(task, t, g, 'crashed')
		end
	end
end
if again + crashed < PER_CALL then -- else they have to be found again
	for r in pairs(gone) do call('ZREM', RUNNERS, r) end
end

for _, cell in ipairs(call('ZRANGEBYSCORE', LATER, '-inf', now, 'LIMIT', 0, PER_CALL)) do
	local g, task, t = load_from(LATER, cell)
	if g then
		make_ready(task, t, g)
		save(task, t, g)
	end
end

local runs = {}
local ready = ask.most > 0 and call('ZRANGE', READY, 0, math.min(ask.most, PER_CALL) - 1, 'WITHSCORES') or {}
for i = 1, #ready, 2 do
	local cell, last = ready[i], class_of(ready[i + 1]) >= LOWEST
	if last and lowest <= 0 then break end
	local g, task, t = load_from(READY, cell)
	local def = g and def_of(task)
	if g and not def then -- it was removed
		conclude(task, t, g, 'cleared')
	elseif g and def.paused then
		admit(task, t, g)
		save(task, t, g)
	elseif g then
		if g.b then
			g.A = g.A or {}
			table.insert(g.A, { a = g.a, b = g.b, u = g.u, x = g.x })
			if #g.A > 5 then table.remove(g.A, 1) end
		end
		g.a, g.r, g.b, g.u, g.x = g.a + 1, ask.runner, now, nil, nil
		enter(task, t, g, 'running', now)
		save(task, t, g)
		runs[#runs + 1] = { task = task, t = time_text(t), generation = g.g, attempt = g.a, failed = g.m, priority = g.p, rev = def.rev }
		if last then lowest = lowest - 1 end
	end
end

-- When there is more to do: of what waits for its time, or if the next runner of others turns out to be gone.
local at
local lives = call('ZCARD', RUNS) > 0 and call('ZRANGE', RUNNERS, 0, 1, 'WITHSCORES') or {}
local scores = { later = first_score(LATER), life = lives[lives[1] == ask.runner and 4 or 2], due = first_score(HEAP) }
for _, score in pairs(scores) do at = math.min(at or math.huge, time_number(score)) end
local first = class_of(first_score(READY)) or -1
local startable = first >= 0 and ask.most > 0 and (first < LOWEST or ask.lowest > 0)
if ask.sleep and #runs == 0 and not startable then -- it is awake from that time on anyway, so nothing later wakes it
	call('HSET', OWN, 'sleeps', at and time_text(at) or '9007199254740991')
end
return answer({ next = time_text(at and soon(at - now) * 1e6 or -1), first = first, recovered = again, crashed = crashed, runs = list(runs) })
