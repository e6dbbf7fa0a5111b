-- Reads values that belong to no partition, and which streams there are. Changes nothing.
--
-- KEYS    1 streams, a hash   2.. strings
-- Returns {the server's time in ms, the fields of the streams, for each string {its value,
--         its remaining life in ms: -1 without an end, -2 where there is none}};
--         the text of an error in the place of what cannot be read
local function try(command, key)
	local reply = redis.pcall(command, key)
	if type(reply) == 'table' and reply.err then return nil, reply.err end
	return reply or ''
end

local time = redis.call('TIME')
local names, unread = try('HKEYS', KEYS[1])
local out = { time[1] * 1000 + math.floor(time[2] / 1000), names or unread }
for i = 2, #KEYS do
	local value, wrong = try('GET', KEYS[i])
	out[i + 1] = wrong or { value, redis.call('PTTL', KEYS[i]) }
end
return out
