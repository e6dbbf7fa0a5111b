-- Says that a runner lives, and which of its runs are not its own any more.
--
-- ARGV    1 runner   2 how many ms it lives from now; then task, t, generation, attempt of each of its runs
-- Returns the number of void ones, and their places among the arguments, from 0; then task, t, generation, attempt of each run that
--         counts as the runner's and is not among them
even_if_full(OWN)
call('ZADD', RUNNERS, time_now() + tonumber(ARGV[2]), ARGV[1])
local void, others, named = {}, {}, {}
for i = 3, #ARGV, 4 do
	local g, cell = load_cell(ARGV[i], tonumber(ARGV[i + 1]))
	named[cell] = true
	if not g or g.s ~= 'running' or g.r ~= ARGV[1] or time_text(g.g) ~= ARGV[i + 2] or time_text(g.a) ~= ARGV[i + 3] then void[#void + 1] = (i - 3) / 4 end
end
for _, cell in ipairs(call('ZRANGE', RUNS, 0, -1)) do
	if not named[cell] then
		local task, t = task_of(cell)
		local g = load_cell(task, tonumber(t))
		if g and g.r == ARGV[1] then
			for _, v in ipairs({ task, t, g.g, g.a }) do others[#others + 1] = v end
		end
	end
end
local out = { #void }
for _, v in ipairs(void) do out[#out + 1] = v end
for _, v in ipairs(others) do out[#out + 1] = v end
return out
