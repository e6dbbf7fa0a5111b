-- Ends a move: the streams are there under the new names. All or nothing.
--
-- KEYS    1 and 2 the app's streams, hashes, under the old names and the new ones
--         3 … for each stream its metadata under the old name and the new one
-- ARGV    1 the field of the mark   2 the mark of this move   3 the mark that is left
--         under the old names   4 that under the new ones, '' for none   then for each
--         stream its name and its metadata, '' where there is none: it is left as it is
-- Returns 1 done, 0 there is a stream that is not named, and nothing was done
-- Errors  OVER when the mark is another one
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return redis.error_reply('OVER') end
local named = { [ARGV[1]] = true }
for i = 5, #ARGV, 2 do named[ARGV[i]] = true end
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
	if not named[name] then return 0 end
end
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write that needs no memory
for i = 5, #ARGV, 2 do
	if ARGV[i + 1] ~= '' then
		redis.call('SET', KEYS[i - 1], ARGV[i + 1])
		redis.call('DEL', KEYS[i - 2])
		redis.call('HSET', KEYS[2], ARGV[i], '1')
		redis.call('HDEL', KEYS[1], ARGV[i])
	end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
if ARGV[4] == '' then redis.call('HDEL', KEYS[2], ARGV[1]) else redis.call('HSET', KEYS[2], ARGV[1], ARGV[4]) end
return 1
