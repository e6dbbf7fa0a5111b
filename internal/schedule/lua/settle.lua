-- Says what became of an operation, and forgets old ones.
--
-- KEYS    15 operations
-- Asks    fence of the owner; number; op: its JSON with the outcome; keep: how many operations stay; again: another one may have its ID
-- Returns nothing
-- Errors  FENCED
local ops, n = KEYS[15], time_text(ask.number)
call('ZREM', HEAP, 'op:' .. string.format('%016.0f', ask.number))
if call('HEXISTS', ops, n) == 1 then call('HSET', ops, n, ask.op) end
if ask.again then call('HDEL', ops, 'id:' .. cjson.decode(ask.op).id) end
local old = time_text(ask.number - ask.keep)
local json = call('HGET', ops, old)
if json then call('HDEL', ops, old, 'id:' .. (cjson.decode(json).id or '')) end
return nil
