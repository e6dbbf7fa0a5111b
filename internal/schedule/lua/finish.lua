-- Ends attempts. One that does not run any more is refused: it was taken over, made void, or ended before.
--
-- Asks    of each: task, t, generation, attempt, result, error, wait: ns until the next attempt. Results are
--           success, skipped;  failed, timeout: another attempt follows if the task has one left, and wait is 0 or more;
--           interrupted: it waits again for so long, uncounted
-- Returns of each whether it ran
even_if_full(OWN)
local out, now = {}, time_now()
for i, x in ipairs(ask) do
	local task, t, result, wait = x.task, tonumber(x.t), x.result, ms(x.wait)
	local def = def_of(task)
	local g, cell = load_cell(task, t)
	out[i] = g ~= nil and g.s == 'running' and g.g == x.generation and g.a == x.attempt
	if out[i] then
		call('ZREM', RUNS, cell)
		g.r, g.u, g.x = nil, now, x.error
		local failed = result == 'failed' or result == 'timeout'
		if failed then g.m = g.m + 1 end
		if result == 'interrupted' or failed and wait >= 0 and def and g.m < def.r then
			if wait > 0 then
				g.s = 'retry'
				call('ZADD', LATER, time_in(wait), cell)
				wake(LOG, OWN, time_text(now + wait))
			else
				make_ready(cell, g)
			end
			save(cell, g)
		else
			g.s = result
			conclude(task, t, g, def, cell)
		end
	end
end
return answer(out)
