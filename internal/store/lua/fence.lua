-- For scripts of a partition's owner.

-- Why the owner with this value may not go on, nil if it may. Only a takeover changes the value.
local function fence(own, value)
	if redis.call('HGET', own, 'tenure') == value then return nil end
	return redis.error_reply('FENCED the partition is not ours')
end

-- A write that needs no memory. Behind it a script may write though the server is full: what the
-- script ends must free more than it takes.
local function even_if_full(own) redis.call('HDEL', own, '') end
