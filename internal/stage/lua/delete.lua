-- Deletes an entity with all of its visits and failures. What runs of it ends as gone.
--
-- KEYS    1 entities   2 runs   3 failures   4 touches   then for each stage its queue and its dead
-- ARGV    1 ID   2 the version that must be stored, '*' any   3... names of the stages
-- Returns 1 deleted, 0 there was none, -1 it has another version
local id = ARGV[1]
local stored = redis.call('HGET', KEYS[1], id)
if not stored then return 0 end
if ARGV[2] ~= '*' and version_of(stored) ~= ARGV[2] then return -1 end
redis.call('HDEL', KEYS[1], id)
redis.call('HDEL', KEYS[2], '! ' .. id)
redis.call('HDEL', KEYS[3], '! ' .. id)
redis.call('ZREM', KEYS[4], id)
for i = 3, #ARGV do
	local field, queue = ARGV[i] .. ' ' .. id, 2 * i - 1
	redis.call('HDEL', KEYS[2], field)
	redis.call('HDEL', KEYS[3], field)
	redis.call('ZREM', KEYS[queue], id)
	redis.call('ZREM', KEYS[queue + 1], id)
end
return 1
