-- Stores a job, behind the number of the operation that made it so, unless a later one has; '' deletes it.
--
-- KEYS    16 jobs   ARGV    1 the owner's fence   2 name   3 operation   4 '<operation> <JSON>', ''
-- Returns 1, 0: a later one has
-- Errors  FENCED
local fenced = fence(OWN, ARGV[1])
if fenced then return fenced end
local stored = call('HGET', KEYS[16], ARGV[2])
if stored and tonumber(stored:match('^%d+')) > tonumber(ARGV[3]) then return 0 end
if ARGV[4] == '' then call('HDEL', KEYS[16], ARGV[2]) else call('HSET', KEYS[16], ARGV[2], ARGV[4]) end
return 1
