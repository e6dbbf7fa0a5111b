-- Finds where a subscription begins, at the end of the log, and keeps what comes from there on for a while: until settings that
-- have the pin are stored, which make it last, or its owner holds the log.
--
-- KEYS    1 holders   2 the last ID that the log gave
-- ARGV    1 the pin   2 for how long, in ms
-- Returns the ID behind which it begins
local last, clock = call('GET', KEYS[2]) or '0-0', call('TIME')
call('HSET', KEYS[1], ARGV[1], last .. ' ' .. ('%.0f'):format(clock[1] * 1000 + ARGV[2]))
return last
