-- Says that a runner lives, and which of its runs are not its own any more.
--
-- Asks    runner; life of it in ns from now; of each of its runs: task, t, generation, attempt
-- Returns void: the places of void ones among them, from 0; others: task, t, generation, attempt of each run that counts as the runner's and
--         is not among them
even_if_full(OWN)
call('ZADD', RUNNERS, time_now() + ms(ask.life), ask.runner)
local void, others, named = {}, {}, {}
for i, r in each(ask.runs) do
	local g, task, t = load_cell(r.task, r.t)
	named[cell_of(task, t)] = true
	if not g or g.s ~= 'running' or g.r ~= ask.runner or g.g ~= r.generation or g.a ~= r.attempt then void[#void + 1] = i - 1 end
end
for _, cell in ipairs(call('ZRANGE', RUNS, 0, -1)) do
	if not named[cell] then
		local g, task, t = load_cell(task_of(cell))
		if g and g.r == ask.runner then others[#others + 1] = { task = task, t = time_text(t), generation = g.g, attempt = g.a } end
	end
end
return answer({ void = list(void), others = list(others) })
