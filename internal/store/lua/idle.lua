-- Tells whether a partition is quiet; behind quiet.lua, whose keys and arguments it has.
--
-- Returns the server's clock in ms, 0 while it is not
local now, no = quiet()
return no or now or 0
