-- Puts an entry. Repeated it raises the version once more, but for 'nx', which
-- then does nothing, and for a queue that gives the IDs: then there are two.
--
-- KEYS    1-6 due, run, versions, data, attempts, sequence
-- ARGV    1 ID, or '' for one that the queue gives   2 time in ms since 1970, or
--         '+' and ms from now   3 min, set, nx, xx   4 '1' with data   5 data
-- Returns {ID or '' where the mode forbids it, version, 1 if it is the first of
--         all that wait and was not before}
local q, at = due_queue(1), tonumber(ARGV[2])
if ARGV[2]:sub(1, 1) == '+' then at = due_now() + at end
local before = redis.call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
local id, version = due_put(q, ARGV[1] ~= '' and ARGV[1] or nil, at, ARGV[3], ARGV[4] == '1' and ARGV[5] or nil)
if not id then return { '', '0', 0 } end
local after = redis.call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
local first = after[1] == id and (not before[1] or due_number(after[2]) < due_number(before[2]))
return { id, due_text(version), first and 1 or 0 }
