-- Removes rows that have ended where no event waits which could see or prolong them. Commits remove those that end by the
-- time of their events.
--
-- KEYS    1 partition   2 ownership hash: tenure, floor   3 states of parked events; then of each table rows and times
-- ARGV    1 lock value   2 how long they have ended, at least, in ms: clocks that go back a little end none too early
-- Returns how many were removed, at most 128 of each table
-- Errors  FENCED when another tenure has the partition
local saved = redis.call('HMGET', KEYS[2], 'tenure', 'floor')
if saved[1] ~= ARGV[1] then return redis.error_reply('FENCED the partition is not ours') end
if #redis.call('XRANGE', KEYS[1], '(' .. saved[2], '+', 'COUNT', 1) > 0 or redis.call('HLEN', KEYS[3]) > 0 then return 0 end
local now, removed = redis.call('TIME'), 0
local until_then = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[2])
for i = 4, #KEYS, 2 do
	local over = redis.call('ZRANGEBYSCORE', KEYS[i + 1], '-inf', until_then, 'LIMIT', 0, 128)
	if #over > 0 then
		redis.call('HDEL', KEYS[i], unpack(over))
		redis.call('ZREM', KEYS[i + 1], unpack(over))
		removed = removed + #over
	end
end
return removed
