-- Finds a position some entries away from another.
--
-- KEYS    1 partition
-- ARGV    1 from this position   2 how many entries, at most a page
--         3 'forward', or 'back': that many entries more are behind the new position
-- Returns {new position, number of entries it is away}: fewer where there are no more
local log, from, n = KEYS[1], ARGV[1], tonumber(ARGV[2])
if ARGV[3] == 'forward' then
	local page = redis.call('XRANGE', log, '(' .. from, '+', 'COUNT', n)
	return { page[#page] and page[#page][1] or from, #page }
end
local page = redis.call('XREVRANGE', log, from, '-', 'COUNT', n + 1)
if #page <= n then return { '0-0', #page } end
return { page[n + 1][1], n }
