-- Stores entities in their order, each with a touch that is due now. Repeated, an entity with a version
-- is answered as another's change, and one without is stored once more.
--
-- KEYS    1 entities   2 versions, a counter   3 touches   4 ownership   5 log
-- ARGV    for each entity: ID, the version that must be stored ('*' any or none, '0' none), payload
-- Returns for each entity: its new version and '', or '' and what is stored, '' for nothing
local out, touched = {}, {}
for i = 1, #ARGV, 3 do
	local id, wanted = ARGV[i], ARGV[i + 1]
	local stored = wanted ~= '*' and redis.call('HGET', KEYS[1], id) or nil
	if wanted ~= '*' and version_of(stored) ~= wanted then
		out[#out + 1], out[#out + 2] = '', stored or ''
	else
		local version = time_text(redis.call('INCRBY', KEYS[2], 1))
		redis.call('HSET', KEYS[1], id, version .. ' 0 ' .. ARGV[i + 2])
		touched[#touched + 1], touched[#touched + 2] = time_text(time_now()), id
		out[#out + 1], out[#out + 2] = version, ''
	end
end
if #touched > 0 then
	redis.call('ZADD', KEYS[3], 'LT', unpack(touched))
	wake(KEYS[5], KEYS[4], touched[1])
end
return out
