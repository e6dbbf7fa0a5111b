-- A page of tasks and times.
--
-- ARGV    1 how many times of each task at most   2 before this time, then tasks
-- Returns for each task the number of its cells, then of each, the newest first: t, the cell
local out, most = {}, ARGV[1]
for i = 3, #ARGV do
	local task = ARGV[i]
	local fields = call('ZRANGE', GRID, '(' .. field_of_grid(task, tonumber(ARGV[2])), '[' .. task .. '@', 'BYLEX', 'REV', 'LIMIT', 0, most)
	out[#out + 1] = #fields
	for _, field in ipairs(fields) do
		local t = tonumber(field:match('@(%d+)$'))
		out[#out + 1], out[#out + 2] = time_text(t), call('HGET', CELLS, cell_of(task, t)) or ''
	end
end
return out
