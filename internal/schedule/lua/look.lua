-- A page of tasks and times.
--
-- Asks    most: how many times of each task; before this time; tasks
-- Returns by task, of each of its cells, the newest first: t, cell
local out = {}
for i, task in each(ask.tasks) do
	local cells = {}
	for k, field in ipairs(call('ZRANGE', GRID, '(' .. field_of_grid(task, ask.before), '[' .. task .. '@', 'BYLEX', 'REV', 'LIMIT', 0, ask.most)) do
		local t = time_text(tonumber(field:match('@(-?%d+)$')))
		cells[k] = '{"t":' .. t .. ',"cell":' .. (call('HGET', CELLS, task .. '@' .. t) or 'null') .. '}'
	end
	out[i] = answer(task) .. ':[' .. table.concat(cells, ',') .. ']'
end
return '{' .. table.concat(out, ',') .. '}'
