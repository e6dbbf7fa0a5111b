-- Looks when the next delayed event of each partition is due. Changes nothing.
--
-- KEYS    the sorted sets of due queues
-- Returns ms until the first event of each is due, -1 where none waits or the key
--         holds a wrong type
local now, out = time_now(), {}
for i, key in ipairs(KEYS) do
	local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
	out[i] = first[2] and math.max(time_number(first[2]) - now, 0) or -1
end
return out
