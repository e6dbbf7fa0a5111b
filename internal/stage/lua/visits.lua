-- What scripts of sets share; it stands before them, behind times.lua.
--
-- A visit is an entity in the queue of a stage, not before a time. It waits in the stage's queue, a
-- sorted set by time, or runs, in the hash of runs, or both: then it was put again while it runs.
-- There is at most one of each. The touch, at which all stages are asked, is the visit of stage '!'.
-- A field of the runs and of the failures is '<stage> <ID>'.

-- An entity is stored as '<version> <passes> <payload>'; the passes are opaque here.
local function version_of(stored) return stored and stored:match('^%d+') or '0' end

-- Notes in the ownership hash that visits were put: take.lua tells the owner, and by that commit.lua knows whether some were
-- put since.
local function note_put(own) redis.call('HSET', own, 'puts', (redis.call('HGET', own, 'puts') or 0) + 1) end

-- A time as text: ms since 1970, or '+' and ms from now.
local function moment(arg)
	if arg:sub(1, 1) == '+' then return time_text(time_in(tonumber(arg:sub(2)))) end
	return arg
end
