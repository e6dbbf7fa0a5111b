-- What scripts of schedulers share; it stands before them, behind fence.lua, times.lua and wake.lua.
--
-- A source is a trigger, 'JOB/trigger/NAME', or a task, 'JOB/task/NAME'. A cell is a task at a logical time, '<task>@<ms>'. It
-- is JSON, made when its first token comes:
--   s   waiting (for tokens), held (for a place of its limit, or the end of a pause), queued, running, retry,
--       success, failed, timeout, crashed, skipped, cancelled, cleared
--   g   generation: how often it has fired      a   attempts of it      k   of these, how many its workers did not survive
--   m   of these, how many failed               d   firings owed        n   tokens for a firing, 0: all edges
--   c   tokens counted towards n                e   edges by source     f   the same, of failures
--   z   the operation that froze it             y   the last one that froze it
--   ng  the generation that the next firing after y has                 h   the generation whose end emits nothing
--   o   the operation to whose re-run it belongs                        p   priority, 0 is first
--   i   the priority that it has from what fired it, and hands on; -1: none, it has that of its task
--   q   its place in the ready queue            r   runner              b   when its last attempt began   u   when it ended
--   x   error                                   A   its last attempts before that one
-- An edge is {s, n, c}: the largest generation that came, the smallest that counts, the one that the last firing used.
--
-- The definitions are a hash: 'task:<task>' JSON {rev, e, f (its sources), n, p, r (attempts), lim, j (1: a join), paused},
-- '<result>:<source>' its targets behind a letter e or f each, 'rev' of the last operation, and what prune.lua says.
local LOG, OWN, DEFS, CELLS, GRID, READY, LATER, RUNS, HELD, PLACES, SEQ, RUNNERS, HEAP, RULES = unpack(KEYS)
local call = redis.call

-- ARGV[1] is what is asked for, as JSON, and so is the answer: an empty list in one is left out. Its numbers have 14 digits:
-- hence logical times and positions are texts, and waits are capped.
local ask, answer = cjson.decode(ARGV[1]), cjson.encode
local function each(l) return ipairs(l ~= cjson.null and l or {}) end
local function list(l) return #l > 0 and l or nil end
local function soon(ms) return math.min(math.max(ms, 0), 1e12) end
local function ms(ns) return math.floor(ns / 1e6) end

-- Who asks as the owner has to be the owner.
local fenced = ask.fence and fence(OWN, ask.fence)
if fenced then return fenced end

local function cell_of(task, t) return task .. '@' .. time_text(t) end
local function task_of(cell)
	local task, t = cell:match('^(.*)@(%d+)$')
	return task, tonumber(t)
end

-- Writes what changes nothing, for a script that may have found everything done: replicas have to confirm that.
local function repeated() call('HSET', DEFS, 'repeated', '1') end

local known = {}
local function def_of(task)
	if known[task] == nil then
		local raw = call('HGET', DEFS, 'task:' .. task)
		known[task] = raw and cjson.decode(raw) or false
	end
	return known[task]
end

local function field_of_grid(task, t) return task .. '@' .. string.format('%016.0f', t) end

-- A cell, and where it is in the hash. If it is not there, it is nil without a definition, or else made of that: until it is stored, its
-- field new has its place in the grid.
local function load_cell(task, t, def)
	local cell = cell_of(task, t)
	local raw = call('HGET', CELLS, cell)
	if raw then
		local g = cjson.decode(raw)
		g.e, g.f = g.e or {}, g.f or {}
		return g, cell
	end
	if not def then return nil, cell end
	local g = { s = 'waiting', g = 0, a = 0, k = 0, m = 0, d = 0, p = def.p, i = -1, n = def.n, e = {}, f = {}, new = field_of_grid(task, t) }
	for _, name in ipairs(def.e or {}) do g.e[name] = { 0, 1, 0 } end
	for _, name in ipairs(def.f or {}) do g.f[name] = { 0, 1, 0 } end
	return g, cell
end

-- Stores a cell, whose edges are not looked at behind that: an empty table is left out, since servers write it in two ways.
local function save(cell, g)
	if g.new then call('ZADD', GRID, 0, g.new) end
	g.e, g.f, g.new = next(g.e) and g.e, next(g.f) and g.f, nil
	call('HSET', CELLS, cell, cjson.encode(g))
end

-- Appends the fact that a source has ended, with the targets that it has now.
local result_of = { success = 's', failed = 'f', timeout = 'f', crashed = 'f', skipped = 'k' }
local function emit(source, t, gen, result, op, priority)
	local to = call('HGET', DEFS, result .. ':' .. source)
	if to then call('XADD', LOG, '*', 'src', source, 't', time_text(t), 'g', time_text(gen), 'o', op or '', 'p', priority, 'to', to) end
end

-- The priority in a place of the ready queue.
local function class_of(score) return math.floor(time_number(score) / 1e15) end

local function first_score(queue) return call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] end

-- Queues a run that has been let in, at its place.
local function make_ready(cell, g)
	local first = first_score(READY)
	if not first or class_of(g.q) < class_of(first) then wake(LOG, OWN, '0') end
	g.s = 'queued'
	call('ZADD', READY, g.q, cell)
end

local function held_of(task, q, t) return task .. '|' .. string.format('%016.0f', tonumber(q)) .. '|' .. time_text(t) end

-- Whether runs of a task are let in.
local function open(task, def)
	return not def.paused and ((def.lim or 0) == 0 or tonumber(call('HGET', PLACES, task) or '0') < def.lim)
end

-- Counts a run no more. Call admit_next behind save: it may be this very cell that follows.
local function leave(task)
	if call('HINCRBY', PLACES, task, -1) < 1 then call('HDEL', PLACES, task) end
end

-- Lets a run in, or has it wait for the end of a pause or of another run of its task. What is let in counts from here to its end, whether
-- its task has a limit or not, since that may change.
local function admit(task, t, g, def, cell)
	g.q = g.q or time_text(g.p * 1e15 + call('INCRBY', SEQ, 1))
	if open(task, def) then
		call('HINCRBY', PLACES, task, 1)
		make_ready(cell, g)
	else
		g.s = 'held'
		call('ZADD', HELD, 0, held_of(task, g.q, t))
	end
end

-- Lets in the runs of a task that are held, as many as there are places, at most so many, and returns how many. Without a definition
-- they are void.
local function admit_next(task, def, most)
	local n = 0
	while n < most and (not def or open(task, def)) do
		local first = call('ZRANGE', HELD, '[' .. task .. '|', '(' .. task .. '}', 'BYLEX', 'LIMIT', 0, 1)[1]
		if not first then break end
		call('ZREM', HELD, first)
		local t = tonumber(first:match('|(%d+)$'))
		local g, cell = load_cell(task, t)
		if g and g.s == 'held' then
			if def then admit(task, t, g, def, cell) else g.s = 'cleared' end
			save(cell, g)
			n = n + 1
		end
	end
	return n
end

local busy = { held = true, queued = true, running = true, retry = true }

-- Ends the last attempt of a generation.
local function emit_end(task, t, g)
	local result = result_of[g.s]
	if result and g.h ~= g.g then emit(task, t, g.g, result, g.o, g.i) end
end

-- Fires a cell as long as there is reason to, and stores it; joins, which do nothing, succeed at once.
local function evaluate(task, t, g, def, cell)
	while def and not busy[g.s] and not g.z do
		local fires = false
		if g.d > 0 then
			g.d, fires = g.d - 1, true
		elseif g.n == 0 then
			local all, new = true, false
			for _, e in pairs(g.e) do
				all = all and e[1] >= e[2]
				new = new or e[1] > e[3]
			end
			fires = all and new
			for _, e in pairs(fires and g.e or {}) do e[3] = e[1] end
		end
		if not fires then break end
		g.g, g.a, g.k, g.m, g.q, g.x, g.r, g.b, g.u, g.A = g.g + 1, 0, 0, 0, nil, nil, nil, nil, nil, nil
		if def.j then
			g.s, g.u = 'success', time_now()
			emit_end(task, t, g)
		else
			admit(task, t, g, def, cell)
		end
	end
	save(cell, g)
end

-- Ends a run that has left its queue, in the state that it has now: what follows fires, and what is held gets its place.
local function conclude(task, t, g, def, cell)
	leave(task)
	emit_end(task, t, g)
	evaluate(task, t, g, def, cell)
	if def then admit_next(task, def, 1) end
end
