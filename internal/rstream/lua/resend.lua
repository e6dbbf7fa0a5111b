-- Appends an event under a name. Repeated within the window it appends nothing and
-- returns what it returned before.
--
-- KEYS    1 partition   2 the name
-- ARGV    1 window in ms   2... fields and values
-- Returns entry ID
local sent = redis.call('GET', KEYS[2])
if sent then return sent end
local id = redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2))
redis.call('SET', KEYS[2], id, 'PX', ARGV[1])
return id
