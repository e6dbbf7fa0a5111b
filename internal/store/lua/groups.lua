-- Looks at a partition's groups that are of no registered processor. Changes nothing.
--
-- KEYS    1 partition
-- ARGV    1 length of an executor ID   2... the registered processors
-- Returns for each such group its name, the processor whose owner has it or '', the last ID
--         delivered, the first ID that it needs, the number of entries delivered and not acked,
--         and of those not delivered yet, or -1 where the server does not know
local log, out, registered = KEYS[1], {}, {}
for i = 2, #ARGV do registered[ARGV[i]] = true end
for _, group in ipairs(groups_of(log)) do
	local processor = processor_of(group['name'], tonumber(ARGV[1]))
	if not registered[processor or group['name']] then
		out[#out + 1] = { group['name'], processor or '', group['last-delivered-id'], needs(log, group), group['pending'], redis.REDIS_VERSION and group['lag'] or -1 }
	end
end
return out
