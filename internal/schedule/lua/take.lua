-- Takes runs that are ready, by priority and then in the order in which they became so. Before that, runs whose runner is gone
-- are queued again, at their place; those that lost too many runners have crashed.
--
-- Asks    fence of the owner; most at all; lowest: most of the lowest priority; runner; life of it in ms from now; crashes that a run
--         does not survive; sleep if there is nothing to do; unknown: look for runs of runners that are not known at all
-- Returns next: ms until there is more to do of what waits for a time, -1: nothing; first: the priority of the first run that is left, -1: none;
--         how many are recovered, which wait again, and crashed; of each run: task, t, generation, attempt, failed attempts, priority, rev of
--         the definition
-- Errors  FENCED
local fenced = fence(OWN, ask.fence)
if fenced then return fenced end
even_if_full(OWN) -- what is taken takes about what it leaves
local now, most, lowest = time_now(), ask.most, ask.lowest
local LOWEST, PER_CALL = 3, 128
if most > 0 then call('ZADD', RUNNERS, now + ask.life, ask.runner) end

local function gone_runners()
	local gone = {}
	for _, r in ipairs(call('ZRANGEBYSCORE', RUNNERS, '-inf', now)) do gone[r] = true end
	return gone
end

local again, crashed = 0, 0
local function recover(gone, unknown)
	for _, cell in ipairs(call('ZRANGE', RUNS, 0, -1)) do
		if again + crashed == PER_CALL then return end
		local raw = call('HGET', CELLS, cell)
		local g = raw and cjson.decode(raw)
		local task, t = task_of(cell)
		if not g or g.s ~= 'running' then
			call('ZREM', RUNS, cell)
		elseif gone[g.r] or unknown and not call('ZSCORE', RUNNERS, g.r) then
			call('ZREM', RUNS, cell)
			g.k, g.r = g.k + 1, nil
			if g.k < ask.crashes then
				g.s, again = 'queued', again + 1
				call('ZADD', READY, g.q, cell)
				save(cell, g)
			else
				local def = def_of(task)
				g.s, g.x, g.u, crashed = 'crashed', 'its worker was lost ' .. g.k .. ' times', now, crashed + 1
				leave(task)
				emit_end(task, tonumber(t), g)
				evaluate(task, tonumber(t), g, def, cell)
				save(cell, g)
				admit_next(task, def, 1)
			end
		end
	end
	for r in pairs(gone) do call('ZREM', RUNNERS, r) end -- last: until then they are found again
end

local gone = gone_runners()
if next(gone) or ask.unknown then recover(gone, ask.unknown) end

for _, cell in ipairs(call('ZRANGEBYSCORE', LATER, '-inf', now, 'LIMIT', 0, PER_CALL)) do
	call('ZREM', LATER, cell)
	local raw = call('HGET', CELLS, cell)
	local g = raw and cjson.decode(raw)
	if g and g.s == 'retry' then
		g.s = 'queued'
		call('ZADD', READY, g.q, cell)
		save(cell, g)
	end
end

-- Takes the first runs of the queue, at most PER_CALL. Returns how many it has looked at.
local runs = {}
local function take()
	local first = call('ZRANGE', READY, 0, math.min(most, PER_CALL) - 1, 'WITHSCORES')
	for i = 1, #first, 2 do
		local cell, last = first[i], class_of(first[i + 1]) >= LOWEST
		if last and lowest <= 0 then return 0 end
		call('ZREM', READY, cell)
		local raw = call('HGET', CELLS, cell)
		local g = raw and cjson.decode(raw)
		local task, t = task_of(cell)
		local def = def_of(task)
		if g and g.s == 'queued' and not def then -- it was removed
			g.s = 'cleared'
			leave(task)
			save(cell, g)
		elseif g and g.s == 'queued' and def.paused then
			g.s = 'held'
			call('ZADD', HELD, 0, held_of(task, g.q, tonumber(t)))
			leave(task)
			save(cell, g)
		elseif g and g.s == 'queued' then
			if g.b then
				g.A = g.A or {}
				table.insert(g.A, { a = g.a, b = g.b, u = g.u, x = g.x })
				if #g.A > 5 then table.remove(g.A, 1) end
			end
			g.s, g.a, g.r, g.b, g.u, g.x = 'running', g.a + 1, ask.runner, now, nil, nil
			call('ZADD', RUNS, now, cell)
			save(cell, g)
			runs[#runs + 1] = { task = task, t = t, generation = g.g, attempt = g.a, failed = g.m, priority = g.p, rev = def.rev }
			most, lowest = most - 1, last and lowest - 1 or lowest
		end
	end
	return #first / 2
end
if most > 0 then take() end

local function score_of(queue) -- of its first
	local score = call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
	return score and time_number(score)
end

-- When the next runner of others may turn out to be gone.
local function next_life()
	if call('ZCARD', RUNS) == 0 then return nil end
	local lives = call('ZRANGE', RUNNERS, 0, -1, 'WITHSCORES')
	for i = 1, #lives, 2 do
		if lives[i] ~= ask.runner then return time_number(lives[i + 1]) end
	end
end

local first, at = score_of(READY), nil
for _, time in pairs({ later = score_of(LATER), life = next_life(), due = score_of(HEAP) }) do at = math.min(at or time, time) end
first = first and class_of(first) or -1
local startable = first >= 0 and ask.most > 0 and (first < LOWEST or ask.lowest > 0)
if ask.sleep then
	-- The owner is awake from that time on anyway, so nothing later wakes it.
	local sleeps = '0'
	if #runs == 0 and not startable then sleeps = at and time_text(at) or '9007199254740991' end
	call('HSET', OWN, 'sleeps', sleeps)
end
return answer({ next = at and soon(at - now) or -1, first = first, recovered = again, crashed = crashed, runs = list(runs) })
