-- Times for scripts, in ms since 1970 by the server's clock; it stands before those that use it.

-- Doubles hold milliseconds and sequence numbers exactly, but must be told to print them so.
local function time_text(n) return string.format('%.0f', n) end

-- The embedded server prints large scores as 4e+12, which its tonumber refuses.
local function time_number(score) return tonumber(score) or tonumber((score:gsub('e', '.0e'))) end

local function time_now()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The time ms milliseconds from now, rounded up: nothing is early.
local function time_in(ms)
	local t = redis.call('TIME')
	local whole = t[2] % 1000 == 0 or ms <= 0
	return t[1] * 1000 + math.floor(t[2] / 1000) + ms + (whole and 0 or 1)
end
