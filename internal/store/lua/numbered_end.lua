end
local reply = numbered()
for log, at in pairs(given) do
	if at.id then redis.call('SET', last_ids[log], at.id) end -- allowed even if the memory is full: see send.lua
end
return reply
