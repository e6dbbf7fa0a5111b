-- Removes a pin that lasts. One with a time belongs to a subscription that is just made.
--
-- KEYS    1 holders
-- ARGV    1 the pin
local at = call('HGET', KEYS[1], ARGV[1])
if at and not at:find(' ', 1, true) then call('HDEL', KEYS[1], ARGV[1]) end
