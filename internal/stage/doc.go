// Package stage is what Redis has of sets of entities: one .lua per script, one typed call for each.
//
// A set is a stream with one processor, Processor, whose log holds nothing but wakes. Beside the log of
// a partition are its entities, the visits that wait and run, and what failed; see lua/visits.lua.
// Take and Commit are calls of the owner of the partition: they carry the fence of its ownership.
//
// No call of unknown outcome is repeated; the comment of each says what a repetition does.
package stage
