-- Fields as one text, each string behind its length and a colon, as reply_packed.go writes them; it
-- stands before the scripts that need it.

local function packed(...)
	local out = {}
	for i, s in ipairs({ ... }) do out[i] = #s .. ':' .. s end
	return table.concat(out)
end

-- The strings of such a text, as far as it can be read.
local function unpacked(text)
	local out, i = {}, 1
	while i <= #text do
		local colon = text:find(':', i, true)
		local n = colon and tonumber(text:sub(i, colon - 1))
		if not n then break end
		out[#out + 1] = text:sub(colon + 1, colon + n)
		i = colon + n + 1
	end
	return out
end
