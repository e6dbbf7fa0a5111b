-- Applies tokens. Repeated, at any later time, it changes nothing.
--
-- Asks    of each token: task, t, source, fails (a failure), generation, operation or '', priority, partition and ID of the fact
-- Returns how many were accepted, duplicates, void (of a run that was made void), and unknown (of tasks that are gone, or
--         that do not wait for the source)
-- Errors  FORGOTTEN
local n = { accepted = 0, duplicate = 0, void = 0, unknown = 0 }
local horizons = {}
if call('HEXISTS', DEFS, 'rev') == 0 then return unknowing() end

-- Whether a cell that is not there may have been forgotten: see prune.lua.
local function forgotten(x)
	if horizons[x.partition] == nil then horizons[x.partition] = call('HGET', DEFS, 'horizon:' .. x.partition) or '' end
	if horizons[x.partition] ~= '' and not before(horizons[x.partition], x.id) then return true end
	return x.operation ~= '' and x.t < tonumber(call('HGET', DEFS, 'low:' .. x.task) or '-1')
end

-- Why a token changes nothing at its edge, nil if it does.
local function refused(x, g, e)
	if g and g.new and forgotten(x) then return 'duplicate' end
	if not e then return 'unknown' end
	if x.generation < e[2] then return 'void' end
	if x.generation <= e[1] then return 'duplicate' end
end

for _, x in ipairs(ask) do
	local def, kind = def_of(x.task), x.fails and 'f' or 'e'
	local g = load_cell(x.task, x.t, true)
	local e = def and g[kind][x.source]
	local what = refused(x, g, e) or 'accepted'
	n[what] = n[what] + 1
	if what == 'accepted' then
		e[1] = x.generation
		g.i, g.p = x.priority, x.priority < 0 and def.p or x.priority
		-- A failure is an event of its own: what it starts is no part of a re-run.
		if kind == 'f' then g.o = nil elseif x.operation ~= '' then g.o = x.operation elseif g.s ~= 'cleared' then g.o = nil end
		if kind == 'f' then
			g.d = g.d + 1
		elseif g.n > 0 then
			g.c = (g.c or 0) + 1
			if g.c >= g.n then g.c, g.d = g.c - g.n, g.d + 1 end
		end
		evaluate(x.task, x.t, g)
	end
end
if n.accepted == 0 then repeated() end
return answer(n)
