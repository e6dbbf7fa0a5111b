-- Ends attempts. One that does not run any more is refused: it was taken over, made void, or ended before.
--
-- ARGV    of each: task, t, generation, attempt, result, error, ms until the next attempt. Results are
--           success, skipped;  failed, timeout: another attempt follows if the task has one left, and the ms are 0 or more;
--           interrupted: it waits again for so many ms, uncounted
-- Returns 1 or 0 of each
even_if_full(OWN)
local out, now = {}, time_now()
for i = 1, #ARGV, 7 do
	local task, t, gen, attempt, result, wait = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], tonumber(ARGV[i + 6])
	local def = def_of(task)
	local g, cell = load_cell(task, t)
	if not g or g.s ~= 'running' or g.g ~= gen or g.a ~= attempt then
		out[#out + 1] = 0
	else
		out[#out + 1] = 1
		call('ZREM', RUNS, cell)
		g.r, g.u, g.x = nil, now, ARGV[i + 5] ~= '' and ARGV[i + 5] or nil
		local failed = result == 'failed' or result == 'timeout'
		if failed then g.m = g.m + 1 end
		if result == 'interrupted' or failed and wait >= 0 and def and g.m < def.r then
			if wait > 0 then
				g.s = 'retry'
				call('ZADD', LATER, time_in(wait), cell)
				wake(LOG, OWN, time_text(now + wait))
			else
				g.s = 'queued'
				make_ready(cell, g.q)
			end
			save(cell, g)
		else
			g.s = result
			leave(task)
			emit_end(task, t, g)
			evaluate(task, t, g, def, cell)
			save(cell, g)
			admit_next(task, def, 1)
		end
	end
end
return out
