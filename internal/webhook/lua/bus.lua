-- Stands before the scripts of buses. Of a subscriber NAME of a delivery partition
--   __whconf  has NAME       what it wants: JSON
--   __whsub   has NAME       how far it has come: JSON, that only the owner of the partition writes
--                 NAME:v     the version of that: a number that each save increases, from the time on when it was made
--                 NAME:s     the version of what it wants
local call = redis.call
