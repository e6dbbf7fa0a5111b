-- Appends to a partition what an outbox has for it, once, however often it is sent: the hash keeps for each
-- outbox the last ID that came, and what is not behind that is passed over.
--
-- KEYS    1 partition   2 hash of what came by hops: the last ID, by outbox
-- ARGV    1 the outbox: stream, processor and number of its partition, with a slash between them   2 the ID up to which all
--         has come, as the caller knows, or ''   3 the length that the partition may have, or 0   4 1 if replicas are to confirm
--         behind these for each entry: its ID in the outbox, the number of its fields and values, and these
-- Returns the last ID that has come, '0-0' for none, and how many were appended, as many as there is room for. If it is
--         before the one of the caller, this server has forgotten some, and none was appended
-- Errors  FULL there is no room: none was appended
local log, hops, last = KEYS[1], KEYS[2], redis.call('HGET', KEYS[2], ARGV[1]) or '0-0'
if ARGV[2] ~= '' and before(last, ARGV[2]) then return { last, 0 } end
local at, from, n, newest, room = 5, nil, 0, last, math.huge
if tonumber(ARGV[3]) > 0 then room = ARGV[3] - redis.call('XLEN', log) end
while at <= #ARGV do
	if before(last, ARGV[at]) then
		if n >= room then break end
		from, n, newest = from or at, n + 1, ARGV[at]
	end
	at = at + 2 + tonumber(ARGV[at + 1])
end
if n == 0 and at <= #ARGV then return redis.error_reply('FULL there is no room') end
if n == 0 then
	if ARGV[4] == '1' and last ~= '0-0' then redis.call('HSET', hops, ARGV[1], last) end -- for WAIT, which counts writes
	return { last, 0 }
end
redis.call('XLEN', log) -- of another type?
redis.call('HSET', hops, ARGV[1], newest) -- if there is no memory for it, nothing was written
at = from
for _ = 1, n do
	local width = tonumber(ARGV[at + 1])
	local put = redis.pcall('XADD', log, '*', unpack(ARGV, at + 2, at + 1 + width))
	if type(put) == 'table' and put.err then -- it runs out of IDs, or this user has no right
		redis.call('HSET', hops, ARGV[1], last)
		return put
	end
	last = ARGV[at]
	at = at + 2 + width
end
return { newest, n }
