-- Obtains a lock as redislock does, on a server whose memory is full and which refuses a SET. Once
-- a script has written, it may write on, and an owner is needed most where only processing and
-- trimming can make room.
--
-- KEYS    1 lock
-- ARGV    1 value   2 expiry in ms
-- Returns 1 obtained, or held by this value already, 0 another owner's
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
