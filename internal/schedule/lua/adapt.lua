-- Has cells of a task wait no more for sources that its definition does not have any more: nothing comes from these. What it has got
-- new is for times that begin later.
--
-- Asks    task; from: where to go on in the grid, '' at its begin
-- Returns where to go on, '' if that was all
local task = ask.task
local def = def_of(task)
repeated()
if not def then return answer('') end
local fresh = new_cell(def)
local fields = call('ZRANGE', GRID, ask.from == '' and '[' .. task .. '@' or '(' .. ask.from, '(' .. task .. 'A', 'BYLEX', 'LIMIT', 0, 128)
for _, field in ipairs(fields) do
	local g, _, t = load_cell(task_of(field))
	local changed, left = false, 0
	for _, kind in ipairs({ 'e', 'f' }) do
		for name in pairs(g and g[kind] or {}) do
			if not fresh[kind][name] then g[kind][name], changed = nil, true
			elseif kind == 'e' then left = left + 1 end
		end
	end
	if changed then
		if g.n > left then g.n = 0 end
		evaluate(task, t, g)
	end
end
return answer(fields[128] or '')
