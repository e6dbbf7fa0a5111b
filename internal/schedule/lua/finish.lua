-- Ends attempts. One that does not run any more is refused: it was taken over, made void, or ended before.
--
-- Asks    of each: task, t, generation, attempt, result, error, wait: ns until the next attempt. Results are
--           success, skipped;  failed, timeout: another attempt follows if the task has one left, and wait is 0 or more;
--           interrupted: it waits again for so long, uncounted
-- Returns of each whether it ran
even_if_full(OWN)
local out, now = {}, time_now()
for i, x in ipairs(ask) do
	local wait, failed = ms(x.wait), x.result == 'failed' or x.result == 'timeout'
	local g, task, t = load_cell(x.task, x.t)
	out[i] = g ~= nil and g.s == 'running' and g.g == x.generation and g.a == x.attempt
	if out[i] then
		local def = def_of(task)
		g.r, g.u, g.x = nil, now, x.error
		if failed then g.m = g.m + 1 end
		if x.result ~= 'interrupted' and not (failed and wait >= 0 and def and g.m < def.r) then
			conclude(task, t, g, x.result)
		elseif wait > 0 then
			enter(task, t, g, 'retry', time_in(wait))
			wake(LOG, OWN, time_text(now + wait))
			save(task, t, g)
		else
			make_ready(task, t, g)
			save(task, t, g)
		end
	end
end
return answer(out)
