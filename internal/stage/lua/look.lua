-- Counts the visits of a partition. Changes nothing.
--
-- KEYS    1 entities   2 runs   3 failures   4 touches   then for each stage its queue and its dead
-- ARGV    '!', then the names of the stages
-- Returns {entities, failures, entities that are slowed down}, then for touches and for each stage: how
--         many wait, how many of these are due, for how many ms the first has been due, how many run, how
--         many failed and are not dead, how many are dead. Of many failures the first ones are counted and
--         stand for all.
local now, page = time_now(), 1000
local failed, found = redis.call('HLEN', KEYS[3]), redis.call('HSCAN', KEYS[3], '0', 'COUNT', page)
local scale, failing, running, slowed = 1, {}, {}, 0
if found[1] ~= '0' then scale = failed / math.max(#found[2] / 2, 1) end
for i = 1, #found[2], 2 do
	local stage = found[2][i]:match('^%S+')
	failing[stage] = (failing[stage] or 0) + scale
	if stage == '!' and found[2][i + 1]:find('"reason":"loop"', 1, true) then slowed = slowed + scale end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
	local stage = field:match('^%S+')
	running[stage] = (running[stage] or 0) + 1
end
local out = { redis.call('HLEN', KEYS[1]), failed, math.floor(slowed) }
for i, stage in ipairs(ARGV) do
	local queue, dead = KEYS[2 + 2 * i - (i > 1 and 1 or 0)], i > 1 and redis.call('ZCARD', KEYS[2 + 2 * i]) or 0
	local first, due, late = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'), 0, 0
	if first[2] and time_number(first[2]) <= now then
		due, late = redis.call('ZCOUNT', queue, '-inf', time_text(now)), now - time_number(first[2])
	end
	for _, n in ipairs({ redis.call('ZCARD', queue), due, late, running[stage] or 0, math.max(math.floor(failing[stage] or 0) - dead, 0), dead }) do out[#out + 1] = n end
end
return out
