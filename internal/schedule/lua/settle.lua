-- Says what became of an operation, and forgets old ones.
--
-- KEYS    15 operations   ARGV    1 the owner's fence   2 number   3 JSON with its outcome   4 how many operations stay   5 '1': another one may have its ID
-- Errors  FENCED
local fenced = fence(OWN, ARGV[1])
if fenced then return fenced end
local ops, n = KEYS[15], tonumber(ARGV[2])
call('ZREM', HEAP, 'op:' .. string.format('%016.0f', n))
if call('HEXISTS', ops, ARGV[2]) == 1 then call('HSET', ops, ARGV[2], ARGV[3]) end
if ARGV[5] == '1' then call('HDEL', ops, 'id:' .. cjson.decode(ARGV[3]).id) end
local old = time_text(n - tonumber(ARGV[4]))
local json = call('HGET', ops, old)
if json then call('HDEL', ops, old, 'id:' .. (cjson.decode(json).id or '')) end
return 1
