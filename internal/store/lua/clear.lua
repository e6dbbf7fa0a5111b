-- Removes the rows of a table in a partition that is locked. Repeated, it changes nothing more.
--
-- KEYS    1 lock   2 rows   3 when those end that do
-- ARGV    1 lock value
-- Returns the number of rows
-- Errors  FENCED when the lock does not hold the value
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.error_reply('FENCED the partition is not ours') end
local rows = redis.call('HLEN', KEYS[2])
redis.call('UNLINK', KEYS[2], KEYS[3])
return rows
