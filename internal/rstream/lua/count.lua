-- Counts entries, a page at a time, without sending them.
--
-- KEYS    1 partition
-- ARGV    1 count those behind this ID   2 size of the page
-- Returns {number of entries in the page, ID of the last one or ''}
local page = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
return { #page, page[#page] and page[#page][1] or '' }
