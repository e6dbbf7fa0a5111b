-- Reads the IDs of entries, a page. The entries stay on the server.
--
-- KEYS    1 partition
-- ARGV    1 XRANGE or XREVRANGE   2 and 3 its first and last ID   4 so many at most
-- Returns {how many there are in the page, the ID of the last one or '', how many it has room for: 0 where an entry
--         may be too large to be read}
local most = math.min(tonumber(ARGV[4]), (readable(KEYS[1])))
if most == 0 then return { 0, '', 0 } end
local page = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'COUNT', most)
return { #page, page[#page] and page[#page][1] or '', most }
