-- Changes when an entry is due. It may be repeated.
--
-- KEYS    1-4 due, versions, data, sequence
-- ARGV    1 ID   2 time in ms since 1970, or '+' and ms from now
-- Returns {1 if there is such an entry, 0 if not: then nothing was changed,
--         1 if it is the first of all that wait and was not before}
local q, at = due_queue(1), tonumber(ARGV[2])
if ARGV[2]:sub(1, 1) == '+' then at = time_in(at) end
if not redis.call('ZSCORE', q.due, ARGV[1]) then return { 0, 0 } end
local before = redis.call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
due_put(q, ARGV[1], at)
local after = redis.call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
local first = after[1] == ARGV[1] and time_number(after[2]) < time_number(before[2])
return { 1, first and 1 or 0 }
