-- Bounds the life of a lock that another owner holds, so that neither a step of the server's clock
-- nor an accident keeps a dead owner's lock alive. The lock is never cut below what its owner
-- counts on, which may have another expiry than ours.
--
-- KEYS    1 lock   2 ownership hash: expiry
-- ARGV    1 the longest expiry that the caller knows of, in milliseconds
-- Returns 1 when the life was cut, else 0
local stored = redis.pcall('HGET', KEYS[2], 'expiry')
local expiry = type(stored) == 'string' and tonumber(stored) or 0
return redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(expiry, tonumber(ARGV[1]))), 'LT')
