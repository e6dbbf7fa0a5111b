-- Trims the oldest entries of a partition that every consumer group has acked, and
-- every registered processor, once there are more than a limit. Leaves every entry that
-- is not acked.
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
