-- Forgets the visits and failures of a stage, a page of failures at a time. Called until the cursor is '0'
-- nothing of the stage is left. What runs ends as gone. May be repeated.
--
-- KEYS    1 queue of the stage   2 its dead   3 runs   4 failures
-- ARGV    1 stage   2 cursor, '0' at first
-- Returns {the next cursor, how many visits waited}
local prefix, waited = ARGV[1] .. ' ', redis.call('ZCARD', KEYS[1])
redis.call('UNLINK', KEYS[1], KEYS[2])
local function forget(hash, field)
	if field:sub(1, #prefix) == prefix then redis.call('HDEL', hash, field) end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do forget(KEYS[3], field) end
local found = redis.call('HSCAN', KEYS[4], ARGV[2], 'COUNT', 1000)
for i = 1, #found[2], 2 do forget(KEYS[4], found[2][i]) end
return { found[1], waited }
