-- Finds where a subscription begins, at the end of the log, and keeps what comes from there on for a while: until settings that
-- name it are stored, which make the pin last, or its owner holds the log.
--
-- KEYS    1 holders   2 the last ID that the log gave
-- ARGV    1 the pin   2 for how long, in ms
-- Returns the ID behind which it begins
local last = call('GET', KEYS[2]) or '0-0'
local at, clock = call('HGET', KEYS[1], ARGV[1]), call('TIME')
local now = clock[1] * 1000
local til = at and at:match(' (%d+)$')
if not at or til and tonumber(til) <= now then at = last else at = at:match('^%S+') end -- an earlier one may still count
call('HSET', KEYS[1], ARGV[1], at .. ' ' .. ('%.0f'):format(now + ARGV[2]))
return last
