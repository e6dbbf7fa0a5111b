-- Sets or removes a rule of one kind, and tells all workers. A rule that is there is replaced, and
-- rules that have ended are removed on the way. Repeated, it does the same with new times and a new
-- generation; a repeated removal reports that there was none.
--
-- KEYS    1 pauses or blocks, a hash: generation, and a field per rule   2 control stream of the app
-- ARGV    1 field of the rule   2 'set', 'copy' of a rule that stands elsewhere, or 'remove'
--         3 who   4 why   5 how long it holds in ms, 0: until it is removed
-- Returns {generation, 1 if the rule was there else 0, server's time in ms,
--         when the rule ends in ms or 0}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('HGETALL', KEYS[1])
redis.call('XLEN', KEYS[2]) -- an error before anything is written, if it is no stream

local before, was, ended = 0, 0, {}
for i = 1, #stored, 2 do
	if stored[i] == 'generation' then
		before = tonumber(stored[i + 1]) or 0
	elseif stored[i] ~= ARGV[1] then
		local ok, rule = pcall(cjson.decode, stored[i + 1])
		local ends = ok and type(rule) == 'table' and tonumber(rule['until']) or 0
		if ends > 0 and ends <= now then ended[#ended + 1] = stored[i] end
	else
		was = 1
	end
end

local lasts, ends = tonumber(ARGV[5]), 0
if lasts > 0 then ends = now + lasts end
-- Greater than any before, also after the hash was deleted: workers compare it.
local generation = string.format('%.0f', math.max(before + 1, now))
redis.call('PEXPIRE', KEYS[1], 1, 'GT') -- changes nothing, and is a write that needs no memory; see obtain.lua
for _, field in ipairs(ended) do redis.call('HDEL', KEYS[1], field) end
if ARGV[2] == 'remove' then
	redis.call('HDEL', KEYS[1], ARGV[1])
else
	redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({
		v = 1, who = ARGV[3], why = ARGV[4], at = now, ['until'] = ends, copy = ARGV[2] == 'copy',
	}))
end
redis.call('HSET', KEYS[1], 'generation', generation)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 256, '*', 'v', '1', 'kind', 'rules', 'generation', generation)
return { tonumber(generation), was, now, ends }
