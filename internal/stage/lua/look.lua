-- Counts the visits of a partition. Changes nothing.
--
-- KEYS    1 entities   2 runs   3 failures   4 touches   then for each stage its queue and its dead
-- Returns {entities, runs, failures}, then for touches and for each stage: how many wait, how many of
--         these are due, for how many ms the first has been due; of a stage also how many are dead
local now = time_now()
local out = { redis.call('HLEN', KEYS[1]), redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3]) }
local function count(queue)
	local first, due, late = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'), 0, 0
	if first[2] and time_number(first[2]) <= now then
		due, late = redis.call('ZCOUNT', queue, '-inf', time_text(now)), now - time_number(first[2])
	end
	out[#out + 1], out[#out + 2], out[#out + 3] = redis.call('ZCARD', queue), due, late
end
count(KEYS[4])
for i = 5, #KEYS, 2 do
	count(KEYS[i])
	out[#out + 1] = redis.call('ZCARD', KEYS[i + 1])
end
return out
