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
local function task_of(cell) return cell:match('^(.*)@(-?%d+)$') end

-- Writes what changes nothing, for a script that may have found everything done: replicas have to confirm that.
local function repeated() call('HSET', DEFS, 'repeated', '1') end

-- The error of a partition that knows nothing, perhaps since its server has forgotten it.
local function unknowing() return redis.error_reply('FORGOTTEN the partition waits until its owner has told it its jobs') end

local known = {}
local function def_of(task)
	if known[task] == nil then known[task] = cjson.decode(call('HGET', DEFS, 'task:' .. task) or 'false') end
	return known[task]
end

local function field_of_grid(task, t) return task .. '@' .. string.format('%016.0f', t) end

-- A cell that nothing has come to; its field new is there until it is stored.
local function new_cell(def)
	local g = { s = 'waiting', g = 0, a = 0, k = 0, m = 0, d = 0, p = def.p, i = -1, n = def.n, e = {}, f = {}, new = true }
	for _, name in ipairs(def.e or {}) do g.e[name] = { 0, 1, 0 } end
	for _, name in ipairs(def.f or {}) do g.f[name] = { 0, 1, 0 } end
	return g
end

-- A cell, its task, and its time as a number. A cell that is not there is nil, or with make a new one, if its task has a definition.
local function load_cell(task, t, make)
	t = tonumber(t)
	local raw, def = call('HGET', CELLS, cell_of(task, t)), make and def_of(task)
	local g = raw and cjson.decode(raw) or def and new_cell(def) or nil
	if g then g.e, g.f = g.e or {}, g.f or {} end
	return g, task, t
end

-- Stores a cell, whose edges are not looked at behind that: an empty table is left out, since servers write it in two ways.
local function save(task, t, g)
	if g.new then call('ZADD', GRID, 0, field_of_grid(task, t)) end
	g.e, g.f, g.new = next(g.e) and g.e, next(g.f) and g.f, nil
	call('HSET', CELLS, cell_of(task, t), cjson.encode(g))
end

-- Appends the fact that a source has ended, with the targets that it has now.
local result_of = { success = 's', failed = 'f', timeout = 'f', crashed = 'f', skipped = 'k' }
local function emit(source, t, gen, result, op, priority)
	local to = call('HGET', DEFS, result .. ':' .. source)
	if to then call('XADD', LOG, '*', 'src', source, 't', time_text(t), 'g', time_text(gen), 'o', op or '', 'p', priority, 'to', to) end
end

-- The priority in a place of the ready queue, nil if there is none.
local function class_of(score) return score and math.floor(time_number(score) / 1e15) end

local function first_score(queue) return call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] end

local function held_of(task, t, g) return task .. '|' .. string.format('%016.0f', tonumber(g.q)) .. '|' .. time_text(t) end

-- The queues of runs that have been let in, by state. Such runs count, whether their task has a limit or not, since that may change.
local queues = { queued = READY, running = RUNS, retry = LATER }

-- Puts a cell into a state: out of its queue, into that of the state, if there are such, at this score; an end of a generation is told.
local function enter(task, t, g, state, score)
	local cell, from, to, result = cell_of(task, t), queues[g.s], queues[state], result_of[state]
	if from then call('ZREM', from, cell) end
	if g.s == 'held' then call('ZREM', HELD, held_of(task, t, g)) end
	if to then call('ZADD', to, score, cell) end
	if state == 'held' then call('ZADD', HELD, 0, held_of(task, t, g)) end
	if to and not from then call('HINCRBY', PLACES, task, 1) end
	if from and not to and call('HINCRBY', PLACES, task, -1) < 1 then call('HDEL', PLACES, task) end
	g.s = state
	if result and g.h ~= g.g then emit(task, t, g.g, result, g.o, g.i) end
end

-- A cell of a queue, its task, and its time; nothing, if it is not in that state: then it is no more in the queue.
local function load_from(queue, cell)
	local g, task, t = load_cell(task_of(cell))
	if g and queues[g.s] == queue then return g, task, t end
	call('ZREM', queue, cell)
end

-- Queues a run at its place.
local function make_ready(task, t, g)
	local first = class_of(first_score(READY))
	if not first or class_of(g.q) < first then wake(LOG, OWN, '0') end
	enter(task, t, g, 'queued', g.q)
end

-- Whether runs of a task are let in.
local function open(task, def)
	return not def.paused and ((def.lim or 0) == 0 or tonumber(call('HGET', PLACES, task) or '0') < def.lim)
end

-- Lets a run in, or has it wait for the end of a pause or of another run of its task.
local function admit(task, t, g)
	g.q = g.q or time_text(g.p * 1e15 + call('INCRBY', SEQ, 1))
	if open(task, def_of(task)) then make_ready(task, t, g) else enter(task, t, g, 'held') end
end

-- Lets in the runs of a task that are held, as many as there are places, at most so many, and returns how many. Without a definition
-- they are void. Call it behind save: it may be a cell that has just left its place that follows.
local function admit_next(task, most)
	local def, n = def_of(task), 0
	while n < most and (not def or open(task, def)) do
		local first = call('ZRANGE', HELD, '[' .. task .. '|', '(' .. task .. '}', 'BYLEX', 'LIMIT', 0, 1)[1]
		if not first then break end
		local g, _, t = load_cell(task, first:match('|(-?%d+)$'))
		if g and g.s == 'held' then
			if def then admit(task, t, g) else enter(task, t, g, 'cleared') end
			save(task, t, g)
			n = n + 1
		else
			call('ZREM', HELD, first)
		end
	end
	return n
end

local busy = { held = true, queued = true, running = true, retry = true }

-- Whether a cell has reason to fire, which it uses.
local function use_reason(g)
	local due = g.d > 0
	if due then
		g.d = g.d - 1
	elseif g.n == 0 then
		for _, e in pairs(g.e) do
			if e[1] < e[2] then return false end
			due = due or e[1] > e[3]
		end
		for _, e in pairs(due and g.e or {}) do e[3] = e[1] end
	end
	return due
end

-- Fires a cell as long as there is reason to, and stores it; joins, which do nothing, succeed at once.
local function evaluate(task, t, g)
	local def = def_of(task)
	while def and not busy[g.s] and not g.z and use_reason(g) do
		g.g, g.a, g.k, g.m, g.q, g.x, g.r, g.b, g.u, g.A = g.g + 1, 0, 0, 0, nil, nil, nil, nil, nil, nil
		if def.j then
			g.u = time_now()
			enter(task, t, g, 'success')
		else
			admit(task, t, g)
		end
	end
	save(task, t, g)
end

-- Ends a run: what follows fires, and what is held gets its place.
local function conclude(task, t, g, state)
	enter(task, t, g, state)
	evaluate(task, t, g)
	if def_of(task) then admit_next(task, 1) end
end
