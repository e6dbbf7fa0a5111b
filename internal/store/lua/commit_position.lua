-- A commit of a position alone; behind commit.lua, which says the rest.
return refusal() or advance() or 'OK'
