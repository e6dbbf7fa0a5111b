-- Makes a dead letter of an event, pending or parked, in one step with its ack or removal. Repeated
-- at any time, it changes nothing: what is neither pending nor parked is a dead letter already, and
-- what was revived since has begun more attempts.
--
-- KEYS    1 partition   2 lock   3 parked events   4 retry states   5 dead letters
--         6 ownership hash: aside
-- ARGV    1 lock value   2 group   3 entry ID   4 attempts that it has begun while it was
--         parked, 0 for any   5... fields and values of the letter
-- Returns ID of the dead letter, '' when it was one before
-- Errors  FENCED when the lock does not hold the value or the group is gone
local ended = over(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
if ended then return ended end
for _, key in ipairs({ KEYS[3], KEYS[4], KEYS[6] }) do redis.call('HLEN', key) end -- a wrong type must show
redis.call('XLEN', KEYS[5]) -- before the first write
local state = ARGV[4] ~= '0' and redis.call('HGET', KEYS[4], ARGV[3])
if state and cjson.decode(state)['n'] > tonumber(ARGV[4]) then return '' end

local taken = take_out(KEYS[1], ARGV[2], KEYS[6], ARGV[1], ARGV[3])
local parked = redis.call('HDEL', KEYS[3], ARGV[3])
redis.call('HDEL', KEYS[4], ARGV[3])
if taken then set_aside(KEYS[1], ARGV[2], KEYS[6], ARGV[1], { ARGV[3] }) end
if not taken and parked == 0 then return '' end
return redis.call('XADD', KEYS[5], '*', unpack(ARGV, 5))
