-- Replaces a field of a hash, if nobody else has meanwhile. Repeated, it answers the same.
--
-- KEYS    1 hash
-- ARGV    1 field   2 what is replaced, '' for nothing   3 what takes its place, '' to remove the field
-- Returns what the field has now, '' for nothing
local now = call('HGET', KEYS[1], ARGV[1]) or ''
if now ~= ARGV[2] then return now end
if ARGV[3] == '' then call('HDEL', KEYS[1], ARGV[1]) else call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return ARGV[3]
