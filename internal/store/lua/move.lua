-- Moves due delayed events into their partition by time, those of one time in the order of their
-- sends. Redis' clock decides, so nothing is early. Repeated or concurrent, it moves each once.
--
-- KEYS    1 partition   2-5 due queue: due, versions, data, sequence
-- ARGV    1 the length that the partition may have, 0 for any   2 how many at most
--         3 how many bytes, about
-- Returns {how many were moved, ms until the next is due or -1,
--         how many that are due do not fit, error of the first that could not be
--         appended or ''}
local log, q, now = KEYS[1], due_queue(2), time_now()
local size, most, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local length = redis.call('XLEN', log)
if size > 0 then most = math.min(most, math.max(size - length, 0)) end

local ids, entries, used = {}, {}, 0
local found = due_list(q, now, most)
for i = 1, #found, 2 do
	local data = redis.call('HGET', q.data, found[i]) or ''
	used = used + #data
	if i > 1 and used > bytes then break end
	local fields = unpacked(data)
	fields[#fields + 1], fields[#fields + 2] = '__at', time_text(time_number(found[i + 1]))
	ids[#ids + 1], entries[#entries + 1] = found[i], fields
end

-- A write that needs no memory: after it the script may write on though the
-- memory is full, see obtain.lua. What is moved takes about what it leaves.
redis.call('PEXPIRE', q.due, 1, 'GT')
local moved, failed = {}, ''
for i, fields in ipairs(entries) do
	local id = redis.pcall('XADD', log, '*', unpack(fields))
	if type(id) == 'table' then
		failed = id.err
		break
	end
	moved[i] = ids[i]
end
if #moved > 0 then
	redis.call('ZREM', q.due, unpack(moved))
	redis.call('HDEL', q.ver, unpack(moved))
	redis.call('HDEL', q.data, unpack(moved))
end
local denied = 0
if size > 0 and length + #moved >= size then denied = redis.call('ZCOUNT', q.due, '-inf', time_text(now)) end
return { #moved, due_wait(q, now), denied, failed }
