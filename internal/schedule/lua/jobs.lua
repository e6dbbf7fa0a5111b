-- Stores jobs, behind the number of the operation that made them so, unless a later one has one of them; '' deletes one.
--
-- KEYS    16 jobs
-- Asks    fence of the owner; operation; jobs, by name: '<operation> <JSON>', ''
-- Returns whether it did
-- Errors  FENCED
local jobs = KEYS[16]
for name in pairs(ask.jobs) do
	local stored = call('HGET', jobs, name)
	if stored and tonumber(stored:match('^%d+')) > ask.operation then return answer(false) end
end
for name, stored in pairs(ask.jobs) do
	if stored == '' then call('HDEL', jobs, name) else call('HSET', jobs, name, stored) end
end
return answer(true)
