-- Ends the run of an entry. Repeated it answers 'gone'.
--
-- KEYS    1-6 due, run, versions, data, attempts, sequence   7 lock
-- ARGV    1 value of the lock, or '' for no lock   2 ID   3 version that was taken
--         4 '1' if it failed   5 when it is due again in ms since 1970, or '+' and
--         ms from now, or '' for never
-- Returns gone, again, later or done; see lib.lua
-- Errors  FENCED when the lock does not hold the value
if ARGV[1] ~= '' and redis.call('GET', KEYS[7]) ~= ARGV[1] then
	return redis.error_reply('FENCED the lock is not ours')
end
local q, next = due_queue(1), tonumber(ARGV[5])
if ARGV[5]:sub(1, 1) == '+' then next = due_now() + next end
return due_done(q, ARGV[2], ARGV[3], ARGV[4] == '1', next)
