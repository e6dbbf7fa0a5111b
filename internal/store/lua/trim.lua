-- Trims a partition's oldest entries that every consumer group and every registered processor has
-- acked, once there are more entries than a limit.
--
-- KEYS    1 partition
-- ARGV    1 the limit   2 number of entries to leave   3 length of an executor ID
--         4... the registered processors
-- Returns {entries removed, the processor without a group that forbids it or ''}
local log = KEYS[1]
local length = redis.call('XLEN', log)
if length <= tonumber(ARGV[1]) then return { 0, '' } end
local keep, holder = acked_by_all(log, groups_of(log), tonumber(ARGV[3]), 4)
if not keep then return { 0, holder or '' } end
return { remove(log, keep, length - tonumber(ARGV[2])), '' }
