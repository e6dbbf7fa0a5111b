-- Applies tokens. Repeated, at any later time, it changes nothing.
--
-- ARGV    of each token: task, t, source, 'e' or 'f' (of a failure), generation, operation or '', priority, partition and ID
--         of the fact
-- Returns how many were accepted, duplicates, void (of a run that was made void), and unknown (of tasks that are gone, or
--         that do not wait for the source)
local n = { 0, 0, 0, 0 }
local horizons = {}

-- Whether the cell may have been forgotten: see prune.lua.
local function forgotten(task, t, op, partition, id)
	if horizons[partition] == nil then horizons[partition] = call('HGET', DEFS, 'horizon:' .. partition) or '' end
	if horizons[partition] ~= '' and not before(horizons[partition], id) then return true end
	return op ~= '' and t < tonumber(call('HGET', DEFS, 'low:' .. task) or '-1')
end

for i = 1, #ARGV, 9 do
	local task, t, source, kind, gen, op, priority = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4]), ARGV[i + 5], tonumber(ARGV[i + 6])
	local def = def_of(task)
	local gone = def and call('HEXISTS', CELLS, cell_of(task, t)) == 0 and forgotten(task, t, op, ARGV[i + 7], ARGV[i + 8])
	local g, cell
	if def and not gone then g, cell = load_cell(task, t, def) end
	local e = g and g[kind][source]
	if gone then
		n[2] = n[2] + 1
	elseif not e then
		n[4] = n[4] + 1
	elseif gen < e[2] then
		n[3] = n[3] + 1
	elseif gen <= e[1] then
		n[2] = n[2] + 1
	else
		e[1] = gen
		g.i, g.p = priority, priority < 0 and def.p or priority
		-- A failure is an event of its own: what it starts is no part of a re-run.
		if kind == 'f' then g.o = nil elseif op ~= '' then g.o = op elseif g.s ~= 'cleared' then g.o = nil end
		if kind == 'f' then
			g.d = g.d + 1
		elseif g.n > 0 then
			g.c = (g.c or 0) + 1
			if g.c >= g.n then g.c, g.d = g.c - g.n, g.d + 1 end
		end
		n[1] = n[1] + 1
		evaluate(task, t, g, def, cell)
		save(cell, g)
	end
end
if n[1] == 0 then repeated() end
return n
