-- Stores a job, behind the number of the operation that made it so, unless a later one has; '' deletes it.
--
-- KEYS    16 jobs
-- Asks    fence of the owner; name; operation; stored: '<operation> <JSON>', ''
-- Returns whether it did
-- Errors  FENCED
local fenced = fence(OWN, ask.fence)
if fenced then return fenced end
local stored = call('HGET', KEYS[16], ask.name)
if stored and tonumber(stored:match('^%d+')) > ask.operation then return answer(false) end
if ask.stored == '' then call('HDEL', KEYS[16], ask.name) else call('HSET', KEYS[16], ask.name, ask.stored) end
return answer(true)
