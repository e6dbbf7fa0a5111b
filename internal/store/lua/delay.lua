-- Puts records into the due queue of a partition, in order. One that is due already is appended at
-- once, unless others that are due wait before it or the partition is full. An ID that was sent
-- before is not sent again, so a call whose records all have IDs may be repeated.
--
-- KEYS    1 partition   2-5 due queue: due, versions, data, sequence
--         6... for each record with an ID: what became of that ID
-- ARGV    1 the length that the partition may have, 0 for any
--         2 how long an ID is remembered, in ms
--         then for each record: when it is due in ms since 1970, or '+' and ms
--         from now; '1' if it has an ID; its packed fields
-- Returns {IDs of those that are in: of the queue or of an entry, or '=' and what
--         its first send returned for an ID that was sent before,
--         error of the first that is not in or '',
--         1 if the queue has a first event that is due earlier than any before}
local log, q, now = KEYS[1], due_queue(2), time_now()
local size, length = tonumber(ARGV[1]), redis.call('XLEN', log)
local head = redis.call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
local before = head[2] and time_number(head[2])
local seen = {}
for k = 6, #KEYS do
	seen[KEYS[k]] = redis.call('GET', KEYS[k])
	if seen[KEYS[k]] then redis.call('PEXPIRE', KEYS[k], ARGV[2]) end -- a write, for WAIT; see durably
end

local first, ids, failed, k = before, {}, '', 5
local function send(at, data)
	local ripe = at <= now and (not first or at < first)
	if not ripe or size > 0 and length >= size then
		if not first or at < first then first = at end
		return (due_put(q, nil, at, data))
	end
	local fields = unpacked(data)
	fields[#fields + 1], fields[#fields + 2] = '__at', time_text(at)
	length = length + 1
	return redis.pcall('XADD', log, '*', unpack(fields))
end

for i = 3, #ARGV, 3 do
	local at, key = tonumber(ARGV[i]), nil
	if ARGV[i]:sub(1, 1) == '+' then at = at > 0 and time_in(at) or now end
	if ARGV[i + 1] == '1' then
		k = k + 1
		key = KEYS[k]
	end
	if key and seen[key] then
		ids[#ids + 1] = '=' .. seen[key]
	else
		local id = send(at, ARGV[i + 2] .. packed('__sent', time_text(now)))
		if type(id) == 'table' then
			failed = id.err
			break
		end
		if key then
			redis.call('SET', key, id, 'PX', ARGV[2])
			seen[key] = id
		end
		ids[#ids + 1] = id
	end
end
return { ids, failed, first ~= before and 1 or 0 }
