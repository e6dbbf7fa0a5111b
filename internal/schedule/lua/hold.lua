-- Pauses a job, or lets it go on. Repeated it changes nothing more.
--
-- Asks    operation; job; pause: its JSON, '' to let go; triggers of the job here, tasks of it here
-- Returns 0; 1: more is held than the call let go, repeat it; -1: the operation is too old
local field = 'paused:' .. ask.job
if tonumber(call('HGET', DEFS, 'held:' .. ask.job) or '0') > ask.operation then return answer(-1) end
call('HSET', DEFS, 'held:' .. ask.job, time_text(ask.operation))
if ask.pause ~= '' then
	call('HSET', DEFS, field, ask.pause)
	for _, id in each(ask.triggers) do call('ZREM', HEAP, id) end
	return answer(0)
end
if call('HDEL', DEFS, field) == 1 then
	for _, id in each(ask.triggers) do
		if call('HEXISTS', RULES, id) == 1 then
			call('ZADD', HEAP, time_now(), id) -- its owner finds out when it goes on
			wake(LOG, OWN, '0')
		end
	end
end
local left = 128
for _, task in each(ask.tasks) do
	local def = def_of(task)
	if def and left > 0 then left = left - admit_next(task, def, left) end
end
return answer(left > 0 and 0 or 1)
