-- What the scripts that read entries need; it stands behind the prelude. A reply inside a script is copied
-- several times: a record of 60 MB keeps the server for seconds.

-- How many entries of a partition a script may read, and the average size of one: about a megabyte of them; all where
-- all together take no more, and 0 where one takes more. The embedded server does not tell, nor any server that does
-- not grant the right to ask.
local function readable(log)
	local length = redis.call('XLEN', log)
	local bytes = redis.REDIS_VERSION and redis.pcall('MEMORY', 'USAGE', log, 'SAMPLES', 100)
	if type(bytes) ~= 'number' or length == 0 then return math.max(length, 1), 0 end
	if bytes <= 1000000 then return length, bytes / length end
	return math.floor(1000000 / bytes * length), bytes / length
end
